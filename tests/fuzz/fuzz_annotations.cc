// SPDX-License-Identifier: Apache-2.0
//
// Any text through the lexer, the preprocessor, the reader of `// @BE` annotations, and the one of device code.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/cxx/lexer.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/read/device_code.h"
#include "daemon/language/read/function_name.h"

namespace {

using namespace kernix::language;

// Whether `part` is a piece of `text`, and not of something that is gone.
bool Within(std::string_view part, std::string_view text) {
  return part.empty() || (part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
}

// A token's text is a piece of the source, or of what the lexer keeps for tokens with spliced lines. A punctuator of
// more than one character has a text of its own.
bool HasLivingText(const Token& token, const LexedSource& lexed, std::string_view source) {
  if (token.kind == TokenKind::kPunctuator || Within(token.text, source)) return true;
  return std::any_of(lexed.storage->begin(), lexed.storage->end(),
                     [&](const std::string& kept) { return Within(token.text, kept); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const LexedSource lexed = Lex(text, 0);
  for (const Token& token : lexed.tokens) {
    if (token.text.empty() || token.line < 1) std::abort();
    if (!HasLivingText(token, lexed, text)) std::abort();
  }
  MacroBudget budget;
  const Preprocessed preprocessed = Preprocess({lexed}, budget);
  for (const Annotation& annotation : FindAnnotations(preprocessed.comments)) {
    if (annotation.name.empty() && !annotation.tokens.empty()) std::abort();
    const auto name = ParseFunctionName(annotation.name);
    if (name.ok() && !IsPlainIdentifier(name->base)) std::abort();
  }
  const bool has_mark = text.starts_with("\xef\xbb\xbf");  // means nothing further down
  if (!has_mark && DigestOfDeviceCode(text) != DigestOfDeviceCode("\n" + std::string(text))) std::abort();
  return 0;
}
