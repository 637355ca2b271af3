// SPDX-License-Identifier: Apache-2.0
//
// Which code reads texts for the prologue.
#pragma once

#include "common/base/digest.h"

namespace kernix::language {

// Over the sources of prologue.cc and of all that it reads texts with, made by the build. With the texts' digests it
// stands for the prologue where texts are not at hand.
const Digest& PrologueSourcesDigest();

}  // namespace kernix::language
