// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the lines of the log, and how much others may have a program write to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace kernix {

// Called with the bytes of each line that has been written, in the order of the lines.
using LogWatcher = std::function<void(size_t bytes)>;

// For whoever keeps the log small; null: nobody. Once this has returned, no call of the last watcher goes on. A watcher
// must not log.
void SetLogWatcher(LogWatcher watcher);

// How much others may have a program write to its log.

// So many bytes in each window of time for each account. What is beyond is counted, and told when the window is over.
// Thread-safe.
class LogBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;

  LogBudget(uint64_t bytes, std::chrono::seconds window) : bytes_(bytes), window_(window) {}

  struct Answer {
    bool write = false;
    uint64_t left_out = 0;  // lines since the last time that this was told: tell it now
  };
  // Whether a line of `bytes` may be written for `account`.
  Answer Ask(std::string_view account, uint64_t bytes, Time now);

  // The accounts of whose lines some were left out, in windows that are over by `now`, and how many. Forgets all
  // accounts of such windows.
  std::vector<std::pair<std::string, uint64_t>> Settle(Time now);

 private:
  struct Account {
    Time end;
    uint64_t bytes = 0;
    uint64_t left_out = 0;
  };

  const uint64_t bytes_;
  const std::chrono::seconds window_;
  Mutex mutex_;
  std::map<std::string, Account, std::less<>> accounts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix
