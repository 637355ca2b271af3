// SPDX-License-Identifier: Apache-2.0
//
// Who asks for an action. Not part of it: what is run does not depend on who wants it.
#pragma once

#include <cstdint>

namespace kernix::exec {

// Opaque: only whether two are the same counts.
using UserId = uint32_t;

}  // namespace kernix::exec
