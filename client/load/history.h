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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/daemon_client.h"
#include "client/load/load_request.h"
#include "client/load/recording.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

inline constexpr char kHistoryVariable[] = "KERNIX_HISTORY";  // "0": nothing is noted or warmed up
// See DaemonClient::OwnFolder(). Has a folder for each program.
inline constexpr char kHistoriesFolder[] = "history";

// What is not used for this long before the last run is of no use.
inline constexpr std::chrono::hours kHistoryAge{30 * 24};

// A full history forgets what the present run has not used; of programs, the least recently used goes first.
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

// The history of one program: a folder with each load as a file. The name of the file is known before its content, and
// its modification time is a use of the last hour in which there was one: the millisecond in which that run began, and
// the number of the use in it, as nanoseconds. Processes share the folder without a lock.
class History {
 public:
  // `histories`: a folder, which need not exist. References must outlive this object.
  History(Env& env, const std::string& histories, const std::string& program, HistoryBounds bounds = {});

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
  void KeepUsed(int64_t since_ns);
  void ForgetOlder(const std::vector<File>& files, std::string_view file, int64_t before_ns);

  Env& env_;
  const std::string histories_;
  const std::string folder_;
  const HistoryBounds bounds_;
};

// The part of one load of this process in the history of its program. It does nothing if the load or the environment
// says so, if nobody knows the program, or if this user cannot have a history.
class OwnHistory {
 public:
  // `variables`: the load's environment, which `get_env` reads. References must outlive this object.
  OwnHistory(DaemonClient& daemon, const std::vector<std::string>& variables, const GetEnv& get_env,
             const LoadOptions& options);

  // `callbacks`, with which the program's other loads are built in the background, once in a process, as soon as a load
  // that its history knows must be built. Not if nobody expects a build.
  LoadCallbacks WithWarmUp(const v1::LoadRequest& request, LoadCallbacks callbacks);

  // Notes the load. Returns a warning if that has failed, but none if this user may not write there.
  std::string Note(const PreparedLoad& load, const std::string& key);

 private:
  void WarmUp() const;

  const DaemonClient& daemon_;
  const std::vector<std::string>& variables_;
  const GetEnv& get_env_;
  std::string program_;
  std::optional<History> history_;
};

}  // namespace kernix
