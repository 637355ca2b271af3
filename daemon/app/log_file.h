// SPDX-License-Identifier: Apache-2.0
//
// A log file that stays small: what it holds beyond its limit goes into one previous file, "<path>.1".
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace kernix::server {

// Not thread-safe, but other threads may write to the descriptor at any time.
class LogFile {
 public:
  // `descriptor` is where the process writes its log; `limit` is in bytes.
  LogFile(std::string path, int descriptor, uint64_t limit = 4ull << 20)
      : path_(std::move(path)), descriptor_(descriptor), limit_(limit) {}

  // Opens the file and puts it behind the descriptor.
  absl::Status Open();

  // If the file has grown beyond the limit, renames it to the previous file, which it replaces, and opens it anew. A
  // background loop; each call is one round.
  absl::Status Step();

 private:
  const std::string path_;
  const int descriptor_;
  const uint64_t limit_;
};

}  // namespace kernix::server
