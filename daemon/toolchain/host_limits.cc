// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "daemon/toolchain/cuda_toolkit.h"

namespace kernix::toolchain {
namespace {

// The largest number that follows `comparison` anywhere. 0 if there is none.
int LargestAfter(const std::string& text, std::string_view comparison) {
  int largest = 0;
  for (size_t at = text.find(comparison); at != std::string::npos; at = text.find(comparison, at + 1)) {
    const size_t begin = at + comparison.size();
    size_t end = begin;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    int number = 0;
    if (absl::SimpleAtoi(text.substr(begin, end - begin), &number)) largest = std::max(largest, number);
  }
  return largest;
}

}  // namespace

HostLimits ParseHostLimits(const std::string& host_config) {
  HostLimits limits;
  limits.newest_gcc = LargestAfter(host_config, "__GNUC__ > ");
  // The text has separate limits for several Clangs; LLVM's is never the lowest.
  limits.newest_clang = std::max(0, LargestAfter(host_config, "(__clang_major__ >= ") - 1);
  return limits;
}

}  // namespace kernix::toolchain
