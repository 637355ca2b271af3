// SPDX-License-Identifier: Apache-2.0
//
// The handler of a target name that a runtime knows but under which no code is live.
#pragma once

#include <cstdint>

#include "kernix/module.h"

namespace kernix {

// A handler that declares `traits` when a runtime asks for its metadata. It answers every call with an error that says
// that no kernel is loaded under the name.
Handler ReservedHandler(uint32_t traits);

}  // namespace kernix
