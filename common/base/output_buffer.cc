// SPDX-License-Identifier: Apache-2.0
#include "common/base/output_buffer.h"

#include <algorithm>

#include "common/base/strings.h"

namespace kernix {

void OutputBuffer::Append(std::string_view data) {
  total_ += data.size();
  const size_t to_head = std::min(data.size(), limit_ / 2 - head_.size());
  head_ += data.substr(0, to_head);
  tail_ += data.substr(to_head);
  if (tail_.size() > 2 * TailLimit()) tail_.erase(0, tail_.size() - TailLimit());
}

std::string OutputBuffer::Text() const {
  if (total_ <= limit_) return head_ + tail_;
  const std::string_view tail = std::string_view(tail_).substr(tail_.size() - TailLimit());
  return StrCat(head_, "\n[... ", total_ - head_.size() - tail.size(), " bytes of output left out ...]\n", tail);
}

}  // namespace kernix
