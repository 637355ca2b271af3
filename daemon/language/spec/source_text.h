// SPDX-License-Identifier: Apache-2.0
//
// The source texts of a request, with the labels that diagnostics show.
#pragma once

#include <string>
#include <string_view>

#include "common/base/strings.h"

namespace kernix::language {

struct SourceText {
  std::string label;
  std::string text;
};

// The folder of an action's input root in which tools look for the lines of sources that they show. Nothing else lies
// there, and no command names it: a source's label decides the name of no file that a tool or its loader might open.
inline constexpr char kSourceFolder[] = "kernix-source";

// The header with the handlers of a unit, in its folder.
inline constexpr char kHandlersHeader[] = "kernix_handlers.h";

// The name of the source with this label for tools. Commands map it back to the label in their outputs, kernixd in
// their messages.
inline std::string ToolName(std::string_view label) { return StrCat(kSourceFolder, "/", label); }

}  // namespace kernix::language
