// SPDX-License-Identifier: Apache-2.0
//
// What is behind a target name that a runtime knows but that no code is live under.
#pragma once

#include <cstdint>

#include "kernix/module.h"

namespace kernix {

// A handler that declares `traits` when a runtime asks for its metadata, and that answers every call with an error,
// which says that no kernel is loaded under the name.
Handler ReservedHandler(uint32_t traits);

}  // namespace kernix
