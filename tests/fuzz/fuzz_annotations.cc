// SPDX-License-Identifier: Apache-2.0
//
// Any text through the lexer, the preprocessor and the reader of `// @BE` annotations.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/cxx/lexer.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/read/annotations.h"
#include "daemon/language/read/function_name.h"

namespace {

using namespace kernix::language;

// Whether `part` is a piece of `text`, and not of something that is gone.
bool Within(std::string_view part, std::string_view text) {
  return part.empty() || (part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
}

// Digraphs have the text of what they mean.
bool IsBracketOrHash(std::string_view text) { return text.find_first_not_of("{}[]#") == std::string_view::npos; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const LexedSource lexed = Lex(text, 0);
  for (const Token& token : lexed.tokens) {
    if (token.text.empty() || token.line < 1) std::abort();
    if (!Within(token.text, text) && !IsBracketOrHash(token.text)) std::abort();
  }
  MacroBudget budget;
  const Preprocessed preprocessed = Preprocess({lexed}, budget);
  for (const Annotation& annotation : FindAnnotations(preprocessed.comments)) {
    if (annotation.name.empty() && !annotation.tokens.empty()) std::abort();
    const auto name = ParseFunctionName(annotation.name);
    if (name.ok() && !IsPlainIdentifier(name->base)) std::abort();
  }
  return 0;
}
