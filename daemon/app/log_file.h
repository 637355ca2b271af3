// SPDX-License-Identifier: Apache-2.0
//
// A log file that stays small: older lines, beyond its limit, go into one previous file, "<path>.1".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace kernix::server {

// Thread-safe. Threads may write to the descriptor at any time.
class LogFile {
 public:
  // `descriptor` is where the process writes its log; `limit` is in bytes.
  LogFile(std::string path, int descriptor, uint64_t limit = 4ull << 20)
      : path_(std::move(path)), descriptor_(descriptor), limit_(limit) {}

  // Opens the file and puts it behind the descriptor.
  absl::Status Open();

  // Notes that so many bytes were written. Takes a Step() after each quarter of the limit, so the file never grows by
  // more, however fast it grows. Ignores errors: a later Step() has them, too.
  void Wrote(size_t bytes);

  // If the file has grown beyond the limit, renames it to the previous file, which it replaces, and opens it anew. A
  // background loop; each call is one round.
  absl::Status Step();

 private:
  absl::Status OpenLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status StepLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const int descriptor_;
  const uint64_t limit_;
  Mutex mutex_;
  uint64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last look
};

}  // namespace kernix::server
