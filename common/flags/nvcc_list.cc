// SPDX-License-Identifier: Apache-2.0
#include "common/flags/nvcc_list.h"

#include <utility>

namespace kernix::flags {
namespace {

class Splitter {
 public:
  explicit Splitter(std::string_view separators) : separators_(separators) {}

  std::vector<std::string> Split(std::string_view value) && {
    for (const char c : value) Take(c);
    if (escaped_ && quote_ == '\0') piece_ += '\\';  // there is nothing to escape
    EndPiece();
    return std::move(pieces_);
  }

 private:
  void Take(char c) {
    if (std::exchange(escaped_, false)) {
      piece_ += c;
    } else if (c == '\\') {
      escaped_ = true;
      if (quote_ != '\0') piece_ += c;
    } else if (quote_ == '\0' && depth_ == 0 && separators_.find(c) != separators_.npos) {
      EndPiece();
    } else {
      Note(c);
      piece_ += c;
    }
  }

  void Note(char c) {
    if (c == '"' || c == '\'') {
      if (quote_ == '\0') {
        quote_ = c;
      } else if (quote_ == c) {
        quote_ = '\0';
      }
    }
    if (quote_ != '\0') return;
    if (c == '(') ++depth_;
    if (c == ')' && depth_ > 0) --depth_;
  }

  void EndPiece() {
    if (!piece_.empty()) pieces_.push_back(std::exchange(piece_, ""));
  }

  const std::string_view separators_;
  std::vector<std::string> pieces_;
  std::string piece_;
  char quote_ = '\0';
  bool escaped_ = false;
  int depth_ = 0;
};

}  // namespace

std::vector<std::string> SplitNvccList(std::string_view value, std::string_view separators) {
  return Splitter(separators).Split(value);
}

}  // namespace kernix::flags
