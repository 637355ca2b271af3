// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/declaration_tokens.h"

#include <algorithm>

namespace kernix::language {
namespace {

// Words whose parentheses hold no declarator.
bool TakesParentheses(const Token& token) {
  return IsOneOf(token, {"__attribute__", "__attribute", "decltype", "__decltype", "__typeof__", "__typeof", "typeof",
                         "noexcept", "throw", "alignas", "asm", "__asm__", "__asm", "explicit", "requires"});
}

bool SaysNothing(const Token& token) {
  return token.kind == TokenKind::kString || IsOneOf(token, {"__extension__", "extern", "static", "inline", "__inline",
                                                             "__inline__", "constexpr", "const", "volatile"});
}

}  // namespace

bool IsOneOf(const Token& token, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return token.Is(word); });
}

size_t AfterBrackets(Tokens tokens, size_t at) {
  int depth = 0;
  for (; at < tokens.size(); ++at) {
    depth += IsOpen(tokens[at]) ? 1 : IsClose(tokens[at]) ? -1 : 0;
    if (depth == 0) return at + 1;
  }
  return at;
}

size_t AfterAngles(Tokens tokens, size_t at) {
  int depth = 0;
  while (at < tokens.size()) {
    if (IsOpen(tokens[at])) {
      at = AfterBrackets(tokens, at);
      continue;
    }
    const bool is_operator = at + 1 < tokens.size() && !tokens[at + 1].space_before &&
                             (tokens[at + 1].Is("=") || (tokens[at].Is("<") && tokens[at + 1].Is("<")));
    if (is_operator) {  // `>=`, `<<`
      at += 2;
      continue;
    }
    depth += tokens[at].Is("<") ? 1 : tokens[at].Is(">") ? -1 : 0;
    ++at;
    if (depth == 0) return at;
  }
  return at;
}

std::vector<Token> EssenceOf(Tokens tokens) {
  std::vector<Token> result;
  for (size_t at = 0; at < tokens.size();) {
    const bool more = at + 1 < tokens.size();
    if (TakesParentheses(tokens[at])) {
      at = more && tokens[at + 1].Is("(") ? AfterBrackets(tokens, at + 1) : at + 1;
    } else if (more && tokens[at].Is("[") && tokens[at + 1].Is("[")) {
      at = AfterBrackets(tokens, at);
    } else if (result.empty() && tokens[at].Is("template")) {
      at = more && tokens[at + 1].Is("<") ? AfterAngles(tokens, at + 1) : at + 1;
    } else if (SaysNothing(tokens[at])) {
      ++at;
    } else {
      result.push_back(tokens[at++]);
    }
  }
  return result;
}

bool IsAssignment(Tokens tokens, size_t at) {
  if (at >= tokens.size() || !tokens[at].Is("=")) return false;
  const bool ends_operator = at > 0 && !tokens[at].space_before && !tokens[at - 1].IsIdentifier() &&
                             !IsClose(tokens[at - 1]) && tokens[at - 1].kind == TokenKind::kPunctuator;
  const bool begins_operator = at + 1 < tokens.size() && tokens[at + 1].Is("=") && !tokens[at + 1].space_before;
  return !ends_operator && !begins_operator;
}

bool HasAtTop(Tokens tokens, std::string_view word) {
  for (size_t at = 0; at < tokens.size(); at = IsOpen(tokens[at]) ? AfterBrackets(tokens, at) : at + 1) {
    if (word == "=" ? IsAssignment(tokens, at) : tokens[at].Is(word)) return true;
  }
  return false;
}

bool BeginsFunction(Tokens before_brace) {
  const std::vector<Token> essence = EssenceOf(before_brace);
  return HasAtTop(essence, "(") && (!HasAtTop(essence, "=") || HasAtTop(essence, "operator"));
}

}  // namespace kernix::language
