// SPDX-License-Identifier: Apache-2.0
//
// What each program of a user loads, so that an upgrade of a compiler costs one wait instead of one for each kernel:
// when the first load of a known program must be built, `kernixctl warmup` has the others built in the background.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/load/load_request.h"
#include "client/load/recording.h"
#include "common/os/env.h"

namespace kernix {

inline constexpr char kHistoryVariable[] = "KERNIX_HISTORY";  // "0": nothing is noted or warmed up
// See DaemonClient::OwnFolder(). Has a folder for each program.
inline constexpr char kHistoriesFolder[] = "history";

// What is not used for this long before the last run is of no use.
inline constexpr std::chrono::hours kHistoryAge{30 * 24};

// A full history begins anew, unless all of it is of the same run; of programs, the least recently used goes first.
struct HistoryBounds {
  size_t programs = 32;
  size_t loads = 512;         // of each program
  uint64_t bytes = 32 << 20;  // of each program
};

// A process of a program, from its first load on. Its forked children belong to it.
struct ProgramRun {
  explicit ProgramRun(Env& env) : began_ns(env.UnixMillis() * 1'000'000) {}

  const int64_t began_ns;  // since 1970, in whole milliseconds
  std::atomic<int64_t> uses = 0;
  std::atomic<bool> full = false;  // the history has room for no further load of this run
};

// The history of one program: a folder with each load as a file. The name of the file is known before its
// content, and its modification time is a use of the last hour in which there was one: the millisecond in
// which that run began, and the number of the use in it, as nanoseconds. Processes share the folder without a lock.
class History {
 public:
  // `histories`: a folder, which need not exist. References must outlive this object.
  History(Env& env, const std::string& histories, std::string program, HistoryBounds bounds = {});

  // Notes that `run` has used this load, whose artifact has this key. A load of an earlier run under the same name is
  // forgotten: it was another version. kPermissionDenied: this user cannot have histories there.
  absl::Status Note(ProgramRun& run, const PreparedLoad& load, const std::string& key);

  // Whether there is a load of this name, and one of another name.
  bool KnowsOthersBeside(std::string_view name);

  // The latest run's loads first, each run's in its order. Removes what is not whole.
  Recording Read();

  // Somebody who warms up holds it. kNotFound: nobody has noted anything. kUnavailable: somebody else holds it.
  absl::StatusOr<std::unique_ptr<FileLock>> Lock();

  struct File {
    std::string name;
    uint64_t size = 0;
    int64_t used_ns = 0;
  };

 private:
  absl::Status EnsureFolder();
  bool IsFull(const std::vector<File>& files) const;
  void ForgetOlder(const std::vector<File>& files, std::string_view file, int64_t before_ns);

  Env& env_;
  const std::string histories_;
  const std::string program_;
  const std::string folder_;
  const HistoryBounds bounds_;
};

}  // namespace kernix
