// SPDX-License-Identifier: Apache-2.0
//
// Identifies the code that reads texts for the prologue.
#pragma once

#include "common/base/digest.h"

namespace kernix::language {

// A digest over the sources of prologue.cc and of the code that it reads texts with, computed by the build. Together
// with the texts' digests, it represents the prologue when the texts are not available.
const Digest& PrologueSourcesDigest();

}  // namespace kernix::language
