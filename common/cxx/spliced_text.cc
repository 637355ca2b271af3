// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/spliced_text.h"

#include "common/cxx/lexer.h"

namespace kernix::language {
namespace {

constexpr std::string_view kSplice = "\\\n";

// The length of a line's end behind the backslash at `at`, or 0. GCC and Clang let blanks stand between.
size_t SpliceAt(std::string_view text, size_t at) {
  const size_t end = text.find_first_not_of(" \t\v\f\r", at + 1);
  return end != std::string_view::npos && text[end] == '\n' ? end + 1 - at : 0;
}

// The first splice at or after `at` that is not spelled as the lexer knows it, or cuts a word.
size_t FindOddSplice(std::string_view text, size_t at) {
  for (at = text.find('\\', at); at != std::string_view::npos; at = text.find('\\', at + 1)) {
    const size_t length = SpliceAt(text, at);
    if (length == 0) continue;
    const size_t after = at + length;
    const bool cuts = at > 0 && !(text[at - 1] == ' ' || text[at - 1] == '\t') && after < text.size() &&
                      !(text[after] == ' ' || text[after] == '\t' || text[after] == '\n');
    if (cuts || length != kSplice.size()) return at;
  }
  return at;
}

class Joiner {
 public:
  explicit Joiner(std::string_view text) : text_(text) {}

  std::string Join() && {
    joined_.reserve(text_.size());
    while (at_ < text_.size()) {
      const size_t length = text_[at_] == '\\' ? SpliceAt(text_, at_) : 0;
      if (length > 0) {
        ++pending_;
        at_ += length;
      } else {
        Take(text_[at_++]);
      }
    }
    EndWord();
    return std::move(joined_);
  }

 private:
  void Take(char c) {
    const bool inside = !joined_.empty() && IsIdentifierPart(joined_.back()) && IsIdentifierPart(c);
    if (!inside) EndWord();
    joined_ += c;
  }

  void EndWord() {
    for (; pending_ > 0; --pending_) joined_ += kSplice;
  }

  const std::string_view text_;
  size_t at_ = 0;
  size_t pending_ = 0;  // splices that go behind the word
  std::string joined_;
};

std::string_view Join(std::string_view text, std::deque<std::string>& storage) {
  if (FindOddSplice(text, 0) == std::string_view::npos) return text;
  return storage.emplace_back(Joiner(text).Join());
}

// 0: none.
char TrigraphAt(std::string_view text, size_t at) {
  constexpr std::string_view kThird = "=/'()!<>-";
  constexpr std::string_view kMeaning = "#\\^[]|{}~";
  const size_t found = at + 2 < text.size() ? kThird.find(text[at + 2]) : std::string_view::npos;
  return found == std::string_view::npos ? '\0' : kMeaning[found];
}

std::string ReplaceTrigraphs(std::string_view text) {
  std::string replaced;
  replaced.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char meaning = text.substr(at, 2) == "??" ? TrigraphAt(text, at) : '\0';
    replaced += meaning != '\0' ? meaning : text[at];
    at += meaning != '\0' ? 3 : 1;
  }
  return replaced;
}

}  // namespace

std::vector<std::string_view> SplicedTexts(std::string_view text, std::deque<std::string>& storage) {
  std::vector<std::string_view> texts = {Join(text, storage)};
  if (text.find("?\?") == std::string_view::npos) return texts;
  const std::string_view replaced = storage.emplace_back(ReplaceTrigraphs(text));
  texts.push_back(Join(replaced, storage));
  return texts;
}

std::string WithoutSplices(std::string_view name) {
  std::string joined;
  for (size_t at = 0; at < name.size();) {
    const size_t length = name[at] == '\\' ? SpliceAt(name, at) : 0;
    if (length == 0) joined += name[at];
    at += length == 0 ? 1 : length;
  }
  return joined;
}

}  // namespace kernix::language
