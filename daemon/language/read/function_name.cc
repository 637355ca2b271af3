// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/function_name.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/types/span.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/cxx/lexer.h"
#include "daemon/language/spec/arg_spec.h"
#include "daemon/language/spec/words.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {
namespace {

using Tokens = absl::Span<const Token>;

// Generated code calls the name on one line, so the name must not contain a literal or a second statement.
bool MayBeArgument(const Token& token) {
  if (token.kind == TokenKind::kString || token.kind == TokenKind::kCharacter) return false;
  return token.kind != TokenKind::kPunctuator || HasText("<>,*&()+-/%|^~!?:::[].", token.text);
}

// The bracket depth after each token. Within parentheses, '<' is a comparison.
class Depth {
 public:
  void Pass(const Token& token) {
    if (token.Is("(") || token.Is("[")) ++round_;
    if (token.Is(")") || token.Is("]")) --round_;
    if (round_ == 0 && token.Is("<")) ++angles_;
    if (round_ == 0 && token.Is(">")) --angles_;
  }
  bool AtAngle(int angles) const { return round_ == 0 && angles_ == angles; }

 private:
  int round_ = 0;
  int angles_ = 0;
};

class Reader {
 public:
  explicit Reader(const std::vector<Token>& tokens) : tokens_(tokens) {}

  // False if the tokens are not a name.
  bool Read(FunctionName& name) {
    size_t at = !tokens_.empty() && tokens_[0].Is("::") ? 1 : 0;
    while (at + 1 < tokens_.size() && IsPlainIdentifier(tokens_[at].text) && tokens_[at + 1].Is("::")) {
      name.scope += tokens_[at].text;
      name.scope += "::";
      at += 2;
    }
    if (at >= tokens_.size() || !tokens_[at].IsIdentifier()) return false;
    name.base = std::string(tokens_[at++].text);
    name.callee = Spelled(tokens_);
    return at == tokens_.size() || ReadArguments(at, name);
  }

 private:
  // The template arguments in their brackets are tokens_[open] to the end.
  bool ReadArguments(size_t open, FunctionName& name) {
    if (!tokens_[open].Is("<") || !tokens_.back().Is(">")) return false;
    name.is_template = true;
    Depth depth;
    size_t begin = open + 1;
    for (size_t i = open; i < tokens_.size(); ++i) {
      if (!MayBeArgument(tokens_[i])) return false;
      const bool ends = depth.AtAngle(1) && (tokens_[i].Is(",") || tokens_[i].Is(">"));
      if (ends && i == begin && tokens_.size() > open + 2) return false;  // f<int,>
      if (ends && i > open + 1) name.template_arguments.push_back(Spelled(tokens_.subspan(begin, i - begin)));
      if (ends) begin = i + 1;
      depth.Pass(tokens_[i]);
      if (depth.AtAngle(0)) return i + 1 == tokens_.size();
    }
    return false;
  }

  const Tokens tokens_;
};

}  // namespace

std::string FunctionName::Exported() const {
  std::string name;
  bool gap = false;
  for (const char c : callee) {
    if (!IsIdentifierPart(c) || c == '$') {
      gap = true;
      continue;
    }
    if (gap && !name.empty()) name += '_';
    gap = false;
    name += c;
  }
  return name;
}

std::string SameExport(const FunctionName& one, const FunctionName& other) {
  const std::string name = one.Exported();
  if (one.callee == other.callee) return StrCat("function '", one.callee, "' is exported twice");
  return StrCat(
      "'", one.callee, "' and '", other.callee, "' both have the name '", name,
      "', which would be exported twice. Export a function of your own that calls one of them, such as 'void ", name,
      "_too(...) { ", other.callee, "(...); }'");
}

absl::StatusOr<FunctionName> ParseFunctionName(std::string_view text) {
  constexpr size_t kMaxName = 4096;
  if (text.size() > kMaxName) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("the function name '", text.substr(0, 40), "...' has ", text.size(), " bytes; at most ",
                            kMaxName, " are allowed"));
  }
  const LexedSource lexed = Lex(text, 0);
  FunctionName name;
  const bool one_line = text.find_first_of("\r\n") == std::string_view::npos && !HasText(text, "//");
  const bool is_read = one_line && Reader(lexed.tokens).Read(name);
  if (!is_read && one_line && name.is_template) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("the function name '", Printable(text),
                            "' has template arguments that kernix cannot read: put an expression in parentheses, as in "
                            "(1 << 2), leave none empty, and give a character or a text a name in the source"));
  }
  if (!is_read) return CheckFunctionName(text);
  KERNIX_RETURN_IF_ERROR(CheckFunctionName(name.base));
  return name;
}

size_t FunctionNameLength(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
    if (depth <= 0 && HasText(" \t\r\n\v\f", std::string_view(&c, 1))) return i;
  }
  return text.size();
}

namespace {

// Removes everything up to and including "@BE"; false for any other comment.
bool ConsumeMarker(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of("/! \t"), text.size()));
  return ConsumePrefix(text, "@BE") && (text.empty() || HasText(" \t\r\n", text.substr(0, 1)));
}

}  // namespace

std::vector<Annotation> FindAnnotations(const std::vector<Comment>& comments) {
  std::vector<Annotation> annotations;
  for (const Comment& comment : comments) {
    std::string_view text = comment.text;
    if (!ConsumeMarker(text)) continue;
    const std::string joined = WithoutSplices(text, " ");
    std::string_view rest = joined;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n\v\f"), rest.size()));
    const size_t length = FunctionNameLength(rest);
    const std::vector<std::string_view> tokens = Words(rest.substr(length));
    Annotation annotation = {std::string(rest.substr(0, length)), {}, comment.source, comment.line};
    annotation.tokens.assign(tokens.begin(), tokens.end());
    annotations.push_back(std::move(annotation));
  }
  return annotations;
}

}  // namespace kernix::language
