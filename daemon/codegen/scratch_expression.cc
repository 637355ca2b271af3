// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/scratch_expression.h"

#include <algorithm>

#include "daemon/base/strings.h"
#include "daemon/codegen/lexer.h"
#include "daemon/codegen/words.h"

namespace kernix::codegen {
namespace {

constexpr std::string_view kExample = "; an expression is a number of bytes, such as 4*arg0.numel()";

constexpr size_t kMaxExpression = 4096;

// Comments, digraphs and trigraphs, which one character at a time does not show.
constexpr std::string_view kHiddenMeanings[] = {"//", "/*", "<%", "%>", "<:", ":>", "%:", "?\?"};

bool IsAllowed(const Token& token) {
  static constexpr std::string_view kPunctuators = "+-*/%()[]<>?:.,&|!=^~";
  if (token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kNumber) {
    return std::all_of(token.text.begin(), token.text.end(), [](unsigned char c) { return c < 0x80; });
  }
  if (token.kind != TokenKind::kPunctuator) return false;
  return token.Is("::") || token.Is("->") || (token.text.size() == 1 && HasText(kPunctuators, token.text));
}

// Whether every bracket has its partner.
bool IsBalanced(const std::vector<Token>& tokens) {
  std::string open;
  for (const Token& token : tokens) {
    if (token.Is("(") || token.Is("[")) open += token.text;
    if (!token.Is(")") && !token.Is("]")) continue;
    if (open.empty() || (open.back() == '(') != token.Is(")")) return false;
    open.pop_back();
  }
  return open.empty();
}

}  // namespace

std::string ProblemOfScratchExpression(std::string_view expression) {
  if (expression.empty()) return StrCat("there is no expression", kExample);
  if (!Words(expression).empty() && Words(expression)[0].size() != expression.size()) {
    return StrCat("it has white space", kExample);
  }
  if (expression.size() > kMaxExpression) {
    return StrCat("it has ", expression.size(), " bytes; at most ", kMaxExpression, " are possible");
  }
  for (const std::string_view hidden : kHiddenMeanings) {
    if (HasText(expression, hidden)) return StrCat("it has '", hidden, "'", kExample);
  }
  const LexedSource lexed = Lex(expression, 0);
  for (const Token& token : lexed.tokens) {
    if (!IsAllowed(token)) return StrCat("it has '", token.text, "'", kExample);
  }
  return IsBalanced(lexed.tokens) ? "" : StrCat("its brackets do not match", kExample);
}

std::vector<std::string_view> FreeNames(std::string_view expression) {
  const LexedSource lexed = Lex(expression, 0);
  std::vector<std::string_view> names;
  for (size_t i = 0; i < lexed.tokens.size(); ++i) {
    const bool member =
        i > 0 && (lexed.tokens[i - 1].Is(".") || lexed.tokens[i - 1].Is("->") || lexed.tokens[i - 1].Is("::"));
    if (lexed.tokens[i].IsIdentifier() && !IsKeyword(lexed.tokens[i].text) && !member)
      names.push_back(lexed.tokens[i].text);
  }
  return names;
}

}  // namespace kernix::codegen
