// SPDX-License-Identifier: Apache-2.0
//
// A name and tokens, a line each, through the reader of arg_specs. What it takes, it takes again as it writes it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/cxx/lexer.h"
#include "daemon/language/read/function_name.h"
#include "daemon/language/spec/arg_spec.h"
#include "daemon/language/spec/function_spec.h"

namespace {

using namespace kernix::language;

std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  FunctionSpec spec;
  const std::string_view written = TakeLine(text);
  const auto name = ParseFunctionName(written);
  if (name.ok()) {
    spec.name = name->Exported();
    const bool keyword = IsKeyword(spec.name);  // of "::class": never, since it is refused
    if (keyword || !IsPlainIdentifier(spec.name)) std::abort();
    if (!ParseFunctionName(name->callee).ok()) std::abort();
  }
  while (!text.empty()) {
    const auto token = ParseToken(written, TakeLine(text));
    if (token.ok() && token->typed) spec.parameters.push_back(token->parameter);
  }
  CheckSpec(spec).IgnoreError();
  const std::vector<std::string> tokens = spec.Tokens();
  FunctionSpec again = {spec.name, {}};
  for (const std::string& token : tokens) {
    const auto parsed = ParseToken(written, token);
    if (!parsed.ok() || !parsed->typed) std::abort();
    again.parameters.push_back(parsed->parameter);
  }
  if (again.Tokens() != tokens) std::abort();
  return 0;
}
