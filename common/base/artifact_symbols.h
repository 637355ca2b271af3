// SPDX-License-Identifier: Apache-2.0
//
// The symbols of an artifact: its exports for handlers, and missing symbols.
//
// An artifact exports each handler twice: as XLA calls it, and with the name of the module as a second argument.
// Modules of many names share an artifact, so only who calls knows the name that an error should have.
#pragma once

#include <string>
#include <string_view>

namespace kernix {

// The symbol with the second argument, by the symbol that XLA calls.
inline std::string NamedHandlerSymbol(const std::string& handler_symbol) { return "kernix_named_" + handler_symbol; }

// Advice about a symbol that neither a linker nor the loader finds.
inline constexpr std::string_view kDefineOrNameLibrary =
    "Define that function in the sources, or name the library that contains it in extra_ldflags";

}  // namespace kernix
