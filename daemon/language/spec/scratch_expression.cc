// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/spec/scratch_expression.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

constexpr std::string_view kExample = "; an expression is a number of bytes, such as 4*arg0.numel()";

constexpr size_t kMaxExpression = 4096;
constexpr size_t kMaxNesting = 64;

// Comments, digraphs and trigraphs, which a check of single characters does not find.
constexpr std::string_view kHiddenMeanings[] = {"//", "/*", "<%", "%>", "<:", ":>", "%:", "?\?"};

bool IsAllowed(const Token& token) {
  static constexpr std::string_view kPunctuators = "+-*/%()[]<>?:.,&|!=^~";
  if (token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kNumber) {
    return std::all_of(token.text.begin(), token.text.end(), [](unsigned char c) { return c < 0x80; });
  }
  if (token.kind != TokenKind::kPunctuator) return false;
  return token.Is("::") || token.Is("->") || (token.text.size() == 1 && HasText(kPunctuators, token.text));
}

// Whether all brackets match and are nested no deeper than people write.
bool IsBalanced(const std::vector<Token>& tokens) {
  std::string open;
  for (const Token& token : tokens) {
    if (token.Is("(") || token.Is("[")) open += token.text;
    if (open.size() > kMaxNesting) return false;
    if (!token.Is(")") && !token.Is("]")) continue;
    if (open.empty() || (open.back() == '(') != token.Is(")")) return false;
    open.pop_back();
  }
  return open.empty();
}

// Writes an expression with its operands marked.
class Marker {
 public:
  Marker(const std::vector<Token>& tokens, std::string_view of) : tokens_(tokens), of_(of) {}

  std::string Run() {
    while (More()) {
      ReadExpression();
      if (More()) Take();  // skips a surplus bracket
    }
    return std::move(out_);
  }

 private:
  bool More() const { return at_ < tokens_.size(); }
  bool At(std::string_view text) const { return More() && tokens_[at_].Is(text); }
  bool AtName() const { return More() && tokens_[at_].IsIdentifier(); }
  bool AtSign() const { return At("+") || At("-") || At("!") || At("~"); }
  bool AtPrefix() const { return AtSign() || At("&") || At("*"); }
  void Take() { out_ += tokens_[at_++].text; }

  // Reads up to a closing bracket.
  void ReadExpression() {
    while (More() && !At(")") && !At("]")) {
      MarkOperand();
      ReadOperand();
      if (More() && !At(")") && !At("]")) TakeOperator();
    }
  }

  void MarkOperand() {
    std::string signs;
    while (AtSign()) signs += tokens_[at_++].text;
    out_ += signs.empty() ? StrCat(of_, "->*") : StrCat(of_, ".After(\"", signs, "\")->*");
  }

  void ReadOperand() {
    while (AtPrefix()) Take();
    const bool brackets = At("(") && !AtCast();
    while (AtCast()) {
      TakeGroup();
      while (AtPrefix()) Take();
    }
    if (brackets) {
      Take();
      ReadExpression();
      if (At(")")) Take();
    } else if (More() && tokens_[at_].kind == TokenKind::kNumber) {
      Take();
    } else {
      TakeName();
    }
    while (ReadPostfix()) {
    }
  }

  // Reads a call, an index or a member; false if none follows.
  bool ReadPostfix() {
    if (At("(") || At("[")) {
      TakeGroup();
    } else if (At(".") || At("->")) {
      Take();
      TakeName();
    } else {
      return false;
    }
    return true;
  }

  // "a::b<c>::d"
  void TakeName() {
    while (AtName() || At("::")) {
      Take();
      const size_t end = AtName() ? at_ : EndOfTemplateArguments();
      while (at_ < end) Take();
    }
  }

  void TakeOperator() {
    static constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    const size_t begin = out_.size();
    Take();
    if (!More()) return;
    const std::string both = out_.substr(begin) + std::string(tokens_[at_].text);
    if (std::find(std::begin(kPairs), std::end(kPairs), both) != std::end(kPairs)) Take();
  }

  // Takes brackets with their content.
  void TakeGroup() {
    int depth = 0;
    do {
      depth += At("(") || At("[") ? 1 : At(")") || At("]") ? -1 : 0;
      Take();
    } while (More() && depth > 0);
  }

  // The index after the '>' of template arguments that begin here; the current index if there are none. `a<b` is a
  // comparison unless a call or a member follows its '>', or a built-in type follows its '<'.
  size_t EndOfTemplateArguments() const {
    if (!At("<")) return at_;
    int depth = 0;
    for (size_t i = at_; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (token.Is("?") || token.Is("|") || token.Is("&") || token.Is(")")) return at_;
      depth += token.Is("<") ? 1 : token.Is(">") ? -1 : 0;
      if (depth > 0) continue;
      const bool followed = i + 1 < tokens_.size() && (tokens_[i + 1].Is("(") || tokens_[i + 1].Is("::"));
      return followed || IsType(tokens_[at_ + 1]) ? i + 1 : at_;
    }
    return at_;
  }

  // Whether "(T)" before an operand begins here.
  bool AtCast() const {
    if (!At("(")) return false;
    size_t end = at_ + 1;
    const auto in_type = [](const Token& token) {
      return token.IsIdentifier() || token.Is("::") || token.Is("<") || token.Is(">") || token.Is(",");
    };
    while (end < tokens_.size() && in_type(tokens_[end])) ++end;
    if (end == at_ + 1 || end + 1 >= tokens_.size() || !tokens_[end].Is(")")) return false;
    const Token& next = tokens_[end + 1];
    if (next.IsIdentifier() || next.kind == TokenKind::kNumber || next.Is("(") || next.Is("::")) return true;
    const bool prefix = next.Is("+") || next.Is("-") || next.Is("~") || next.Is("!") || next.Is("*") || next.Is("&");
    return prefix && IsType(tokens_[end - 1]);
  }

  // Guesses from the spelling.
  static bool IsType(const Token& token) {
    static constexpr std::string_view kTypes[] = {"bool",  "char",   "short",  "int",     "long",
                                                  "float", "double", "signed", "unsigned"};
    return std::find(std::begin(kTypes), std::end(kTypes), token.text) != std::end(kTypes) ||
           token.text.ends_with("_t");
  }

  const std::vector<Token>& tokens_;
  const std::string_view of_;
  std::string out_;
  size_t at_ = 0;
};

}  // namespace

std::string ProblemOfScratchExpression(std::string_view expression) {
  if (expression.empty()) return StrCat("there is no expression", kExample);
  if (!Words(expression).empty() && Words(expression)[0].size() != expression.size()) {
    return StrCat("it has white space", kExample);
  }
  if (expression.size() > kMaxExpression) {
    return StrCat("it has ", expression.size(), " bytes; at most ", kMaxExpression, " are allowed");
  }
  for (const std::string_view hidden : kHiddenMeanings) {
    if (HasText(expression, hidden)) return StrCat("it has '", hidden, "'", kExample);
  }
  const LexedSource lexed = Lex(expression, 0);
  for (const Token& token : lexed.tokens) {
    if (!IsAllowed(token)) return StrCat("it has '", token.text, "'", kExample);
  }
  return IsBalanced(lexed.tokens) ? "" : StrCat("its brackets do not match, or are nested too deeply", kExample);
}

std::string WithOperandsMarked(std::string_view expression, std::string_view of) {
  const LexedSource lexed = Lex(expression, 0);
  return Marker(lexed.tokens, of).Run();
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

}  // namespace kernix::language
