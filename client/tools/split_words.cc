// SPDX-License-Identifier: Apache-2.0
#include "client/tools/split_words.h"

#include "absl/strings/ascii.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

// Reads words one after another.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : rest_(text) {}

  bool SkipSpace() {
    while (!rest_.empty() && absl::ascii_isspace(rest_.front())) rest_.remove_prefix(1);
    return !rest_.empty();
  }

  absl::StatusOr<std::string> Word() {
    std::string word;
    while (!rest_.empty() && !absl::ascii_isspace(rest_.front())) {
      const char c = Take();
      if (c == '\'' || c == '"') {
        KERNIX_RETURN_IF_ERROR(Quoted(c, word));
      } else if (c == '\\' && !rest_.empty()) {
        word += Take();
      } else {
        word += c;
      }
    }
    return word;
  }

 private:
  char Take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  absl::Status Quoted(char quote, std::string& word) {
    while (!rest_.empty()) {
      const char c = Take();
      if (c == quote) return absl::OkStatus();
      const bool escape = c == '\\' && quote == '"' && !rest_.empty() &&
                          std::string_view("\"\\$`").find(rest_.front()) != std::string_view::npos;
      word += escape ? Take() : c;
    }
    return absl::InvalidArgumentError(StrCat("the quote ", std::string(1, quote), " is not closed"));
  }

  std::string_view rest_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitShellWords(std::string_view text) {
  std::vector<std::string> words;
  Splitter splitter(text);
  while (splitter.SkipSpace()) {
    KERNIX_ASSIGN_OR_RETURN(std::string word, splitter.Word());
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace kernix
