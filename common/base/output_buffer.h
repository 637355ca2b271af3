// SPDX-License-Identifier: Apache-2.0
//
// A bounded buffer for the output of a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kernix {

// Keeps the first and the last half of `limit` bytes and drops the middle. Not thread-safe.
class OutputBuffer {
 public:
  explicit OutputBuffer(size_t limit) : limit_(limit) {}

  void Append(std::string_view data);

  // The complete output, or both ends with a line between them that says how much is missing.
  std::string Text() const;

 private:
  size_t TailLimit() const { return limit_ - limit_ / 2; }

  size_t limit_;
  std::string head_;
  std::string tail_;  // up to twice the shown size, so that trimming is rare
  uint64_t total_ = 0;
};

}  // namespace kernix
