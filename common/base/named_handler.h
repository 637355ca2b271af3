// SPDX-License-Identifier: Apache-2.0
//
// An artifact exports each handler twice: as XLA calls it, and with the name of the module as a second argument.
// Modules of many names share an artifact, so only who calls knows the name that an error should have.
#pragma once

#include <string>

namespace kernix {

// The symbol with the second argument, by the symbol that XLA calls.
inline std::string NamedHandlerSymbol(const std::string& handler_symbol) { return "kernix_named_" + handler_symbol; }

}  // namespace kernix
