// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/writable_inputs.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/read/declarations.h"

namespace kernix::language {
namespace {

// Bounds the work for each use of an input, and for each statement: a text may be written to be slow to read. Longer
// texts get no warning.
constexpr size_t kMostTokens = 256;
constexpr size_t kMostInputs = 256;
constexpr size_t kMostFound = 20;

// Reads one text from left to right, statement by statement.
class Reader {
 public:
  explicit Reader(Tokens tokens) : tokens_(tokens) {}

  std::vector<WritableInput> Read() {
    for (; at_ < tokens_.size() && found_.size() < kMostFound; ++at_) {
      const Token& token = tokens_[at_];
      if (token.Is("Tensor")) NoteParameter();
      if (token.Is("data_ptr")) CheckUse();
      if (token.Is("{")) ++depth_;
      if (token.Is("}")) depth_ = std::max(0, depth_ - 1);
      if (token.Is("}") || token.Is(";")) ForgetParameters();
      if (token.Is(";") || token.Is("{") || token.Is("}")) statement_ = at_ + 1;
    }
    return std::move(found_);
  }

 private:
  const Token* Next(size_t offset) const { return at_ + offset < tokens_.size() ? &tokens_[at_ + offset] : nullptr; }
  bool NextIs(size_t offset, std::string_view text) const { return Next(offset) != nullptr && Next(offset)->Is(text); }

  // `const BE::Tensor x,`, `const BE::Tensor& x)`, and the same without const, which hides an outer one.
  void NoteParameter() {
    const size_t name = NextIs(1, "&") ? 2 : 1;
    if (Next(name) == nullptr || !Next(name)->IsIdentifier()) return;
    if (!NextIs(name + 1, ",") && !NextIs(name + 1, ")")) return;
    size_t begin = at_;
    while (begin > 0 && (tokens_[begin - 1].Is("::") || tokens_[begin - 1].Is("BE"))) --begin;
    const bool is_const = begin > 0 && tokens_[begin - 1].Is("const");
    if (!is_const) {
      inputs_.erase(Next(name)->text);
    } else if (inputs_.size() < kMostInputs) {
      inputs_[Next(name)->text] = depth_;
    }
  }

  // Parameters end with the body or the declaration of their function.
  void ForgetParameters() {
    std::erase_if(inputs_, [&](const auto& input) { return input.second >= depth_; });
  }

  // `x.data_ptr<T>()`, at "data_ptr".
  void CheckUse() {
    if (at_ < 2 || !tokens_[at_ - 1].Is(".")) return;
    const Token& object = tokens_[at_ - 2];
    if (!inputs_.contains(object.text)) return;
    const size_t end = EndOfCall();
    if (end == 0 || Contains(tokens_.subspan(at_, end - at_), "const")) return;
    const bool is_written = IsElementWritten(end) || IsDereferencedAndWritten(end);
    if (is_written || IsKeptWritable(end)) found_.push_back({std::string(object.text), object.line});
  }

  // The index after `data_ptr<T>()`; 0 if this is something else.
  size_t EndOfCall() const {
    size_t i = at_ + 1;
    if (i < tokens_.size() && tokens_[i].Is("<")) i = AfterBrackets(i, "<", ">");
    if (i + 1 >= tokens_.size() || !tokens_[i].Is("(") || !tokens_[i + 1].Is(")")) return 0;
    return i + 2;
  }

  // The index after the bracket that closes the one at `i`, or where the look for it ends.
  size_t AfterBrackets(size_t i, std::string_view open, std::string_view close) const {
    const size_t end = std::min(tokens_.size(), i + kMostTokens);
    int depth = 0;
    do {
      depth += tokens_[i].Is(open) ? 1 : tokens_[i].Is(close) ? -1 : 0;
      ++i;
    } while (i < end && depth > 0);
    return i;
  }

  bool Is(size_t i, std::string_view text) const { return i < tokens_.size() && tokens_[i].Is(text); }

  // `x.data_ptr<T>()[...] = `.
  bool IsElementWritten(size_t end) const { return Is(end, "[") && IsAssignedTo(AfterBrackets(end, "[", "]")); }

  // `*x.data_ptr<T>() = `, `*(x.data_ptr<T>() + i) = `.
  bool IsDereferencedAndWritten(size_t end) const {
    if (at_ < 3) return false;
    const size_t before = at_ - 3;
    if (Is(before, "*")) return IsAssignedTo(end);
    if (before == 0 || !Is(before, "(") || !Is(before - 1, "*")) return false;
    return (Is(end, "+") || Is(end, "-")) && IsAssignedTo(AfterBrackets(before, "(", ")"));
  }

  // `= ` or `+= ` at `i`.
  bool IsAssignedTo(size_t i) const {
    if (i + 1 >= tokens_.size()) return false;
    const bool compound = std::string_view("+-*/%&|^").find(tokens_[i].text) != std::string_view::npos;
    if (compound) return tokens_[i + 1].Is("=") && !tokens_[i + 1].space_before;
    return tokens_[i].Is("=") && !tokens_[i + 1].Is("=");
  }

  // `T* p = x.data_ptr...`, perhaps with a cast to another pointer that is not const.
  bool IsKeptWritable(size_t end) const {
    if (end < tokens_.size() && tokens_[end].Is("[")) return false;
    if (at_ - 2 - statement_ > kMostTokens) return false;
    const Tokens before = tokens_.subspan(statement_, at_ - 2 - statement_);
    const auto is_equals = [](const Token& token) { return token.Is("="); };
    const size_t equals = std::find_if(before.begin(), before.end(), is_equals) - before.begin();
    if (equals == before.size()) return false;
    const Tokens declaration = before.subspan(0, equals);
    const Tokens cast = before.subspan(equals + 1);
    if (declaration.empty() || declaration.front().Is("*") || !Contains(declaration, "*")) return false;
    for (const std::string_view other : {"const", "auto", "(", "[", ".", "->"}) {
      if (Contains(declaration, other)) return false;
    }
    return cast.empty() || cast.front().Is("(") || cast.front().text.ends_with("_cast");
  }

  const Tokens tokens_;
  size_t at_ = 0;
  size_t statement_ = 0;  // where it begins
  int depth_ = 0;
  std::map<std::string_view, int> inputs_;  // the parameters in scope, and the depth of their declaration
  std::vector<WritableInput> found_;
};

}  // namespace

std::vector<WritableInput> FindWritableInputs(std::string_view text) {
  if (text.find("data_ptr") == std::string_view::npos) return {};
  MacroBudget none{0, 0, 0};
  const Preprocessed read = Preprocess({Lex(text, 0)}, none);
  return Reader(read.tokens).Read();
}

}  // namespace kernix::language
