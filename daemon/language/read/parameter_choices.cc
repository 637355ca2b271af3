// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/parameter_choices.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace kernix::language {
namespace {

using Tokens = absl::Span<const Token>;

// Sources come from other users. People have one or two macros in a parameter, of two or three meanings.
constexpr size_t kMaxChoices = 32;
constexpr size_t kMaxTokens = 300;
constexpr int kMaxNesting = 20;

bool IsMark(const Token& token) { return token.Is("#if") || token.Is("#else") || token.Is("#endif"); }

// All texts that a text with marks may be.
class ChoiceReader {
 public:
  explicit ChoiceReader(Tokens tokens) : tokens_(tokens) {}

  // None when there are too many.
  std::vector<std::vector<Token>> Read() {
    std::vector<std::vector<Token>> texts = {{}};
    Extend(texts, 0);
    if (too_many_ || i_ != tokens_.size()) texts.clear();
    return texts;
  }

 private:
  // Appends what stands here up to the end of the branch to all of `texts`, in each of its forms.
  void Extend(std::vector<std::vector<Token>>& texts, int nesting) {
    while (i_ < tokens_.size() && !too_many_ && !tokens_[i_].Is("#else") && !tokens_[i_].Is("#endif")) {
      if (tokens_[i_].Is("#if")) {
        ExtendByBranches(texts, nesting);
      } else {
        for (std::vector<Token>& text : texts) text.push_back(tokens_[i_]);
        ++i_;
      }
    }
  }

  void ExtendByBranches(std::vector<std::vector<Token>>& texts, int nesting) {
    std::vector<std::vector<Token>> all;
    while (i_ < tokens_.size() && !too_many_ && !tokens_[i_].Is("#endif")) {
      ++i_;
      std::vector<std::vector<Token>> branch = texts;
      Extend(branch, nesting + 1);
      all.insert(all.end(), branch.begin(), branch.end());
      too_many_ = too_many_ || nesting > kMaxNesting || all.size() > kMaxChoices;
    }
    ++i_;
    texts = std::move(all);
  }

  const Tokens tokens_;
  size_t i_ = 0;
  bool too_many_ = false;
};

bool IsConvertible(const SignatureParameter& parameter) {
  return parameter.kind == ParameterClass::kScalar || parameter.kind == ParameterClass::kStream;
}

bool ReadAlike(const SignatureParameter& a, const SignatureParameter& b) {
  return a.kind == b.kind && a.scalar == b.scalar && a.name == b.name && a.by_value == b.by_value;
}

}  // namespace

bool HasChoicesWithinParameters(Tokens list) {
  std::vector<int> open;  // depth of brackets at each #if
  int depth = 0;
  for (const Token& token : list) {
    if (IsMark(token)) {
      if (token.in_directive) return false;
      if (token.Is("#if")) open.push_back(depth);
      if (open.empty() || open.back() != depth) return false;
      if (token.Is("#endif")) open.pop_back();
      continue;
    }
    if (token.Is("(") || token.Is("[") || token.Is("{")) ++depth;
    if (token.Is(")") || token.Is("]") || token.Is("}")) --depth;
    if (!open.empty() && (depth < open.back() || (token.Is(",") && depth == 0))) return false;
  }
  return open.empty();
}

std::optional<SignatureParameter> ReadChoices(Tokens tokens, const TypeNames& types) {
  if (std::none_of(tokens.begin(), tokens.end(), IsMark)) return ReadParameter(tokens, types);
  if (tokens.size() > kMaxTokens) return std::nullopt;
  std::optional<SignatureParameter> result;
  bool readable = true;
  bool has_default = true;
  for (const std::vector<Token>& text : ChoiceReader(tokens).Read()) {
    SignatureParameter choice = ReadParameter(text, types);
    has_default = has_default && choice.has_default;
    const bool is_readable = choice.kind != ParameterClass::kOther;
    readable = readable && is_readable;
    const bool first = !result.has_value() || result->kind == ParameterClass::kOther;
    if (!first && is_readable && !ReadAlike(*result, choice)) return std::nullopt;
    if (!result.has_value() || (first && is_readable)) result = std::move(choice);
  }
  if (!result.has_value()) return std::nullopt;
  if (!readable && result->kind != ParameterClass::kOther && !IsConvertible(*result)) return std::nullopt;
  result->has_default = has_default;
  return result;
}

}  // namespace kernix::language
