// SPDX-License-Identifier: Apache-2.0
//
// Generates the text of XLA FFI handlers, which call user functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/language/spec/function_spec.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

// How the names begin under which diagnostics show the lines of handlers.
inline constexpr char kHandlerOf[] = "<handler of ";

// `text` as a C string literal.
std::string Literal(std::string_view text);

// Adds the includes that the handlers of `functions` need. Must come before the sources.
void AppendHandlerIncludes(const std::vector<FunctionSpec>& functions, std::string& out);

// Adds the handler of one function. Diagnostics name its lines after it. Must come after the sources.
void AppendHandler(v1::Language language, const FunctionSpec& spec, bool allow_cuda_graph, std::string& out);

}  // namespace kernix::language
