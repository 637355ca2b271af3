// SPDX-License-Identifier: Apache-2.0
//
// A bounded buffer for the output of a process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/strings.h"

namespace kernix {

// Keeps the first and the last half of `limit` bytes and drops the middle. Not thread-safe.
class OutputBuffer {
 public:
  explicit OutputBuffer(size_t limit) : limit_(limit) {}

  void Append(std::string_view data) {
    total_ += data.size();
    const size_t to_head = std::min(data.size(), limit_ / 2 - head_.size());
    head_ += data.substr(0, to_head);
    tail_ += data.substr(to_head);
    if (tail_.size() > 2 * TailLimit()) tail_.erase(0, tail_.size() - TailLimit());
  }

  // The complete output, or both ends with a line between them that says how much is missing.
  std::string Text() const {
    if (total_ <= limit_) return head_ + tail_;
    const std::string_view tail = std::string_view(tail_).substr(tail_.size() - TailLimit());
    return StrCat(head_, "\n[... ", total_ - head_.size() - tail.size(), " bytes of output left out ...]\n", tail);
  }

 private:
  size_t TailLimit() const { return limit_ - limit_ / 2; }

  size_t limit_;
  std::string head_;
  std::string tail_;  // up to twice the shown size, so that trimming is rare
  uint64_t total_ = 0;
};

}  // namespace kernix
