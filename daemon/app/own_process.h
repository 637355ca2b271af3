// SPDX-License-Identifier: Apache-2.0
//
// What kernixd does about its own process: how it leaves the program whose load started it, settings inherited from
// that program, its memory, its log, and why and how it stops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

// Goes on in a child process, whose parent ends, so that the program need not collect it. Must be called before the
// first thread starts. `report`: a socket of the program's. False, and nothing, if it is none.
bool Detach(int report);

// Tells the program, if it still listens, how the detached process ends.
void ReportEnd(int report, int exit_code);

// Settings that kernixd inherits from the program whose load started it. That program may run on one core, at a low
// priority or within limits of its own, but kernixd serves others, too, and compilers have what kernixd has.

// Takes all processors that this process may have, the usual priorities for processor, memory and disk, the usual
// umask, and its limits as far as it may raise them. Returns what remains, in words. Call it before the first thread
// starts.
std::vector<std::string> ShedInherited();

// The memory of this process.

// Makes all threads allocate from one arena. Must be called before the first thread starts.
void LimitArenas();

// Gives freed memory back to the system.
void ReturnMemory();

// Routes gRPC's log into ours.

// Process-wide. Logs gRPC's errors as warnings: a failure of one connection is not an error of the daemon.
void RouteGrpcLog();

// A log file that stays small: older lines, beyond its limit, go into one previous file, "<path>.1".

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

// Makes SIGTERM, SIGINT and SIGHUP available to wait for.
class StopSignals {
 public:
  // Blocks the signals, and ignores SIGPIPE and SIGXFSZ. Must be called before the process has a second thread, because
  // threads inherit this.
  static absl::StatusOr<StopSignals> Take();

  // Returns the name of a signal that has arrived, once for each. Does not wait.
  std::optional<std::string> Next();

  // Becomes readable when a signal has arrived.
  int fd() const { return fd_.get(); }

 private:
  explicit StopSignals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

struct StopReason {
  std::string text;
  Duration drain_timeout{0};  // 0: the daemon's own setting
};

// Any thread may set it; the main thread waits for it. Thread-safe.
class StopRequest {
 public:
  StopRequest();

  // Only the first call counts.
  void Set(std::string_view reason, Duration drain_timeout = Duration{0});

  std::optional<StopReason> Get() const;

  // Becomes readable once the request is set; negative if the system had no descriptor left.
  int fd() const { return fd_.get(); }

 private:
  const UniqueFd fd_;
  mutable Mutex mutex_;
  std::optional<StopReason> reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
