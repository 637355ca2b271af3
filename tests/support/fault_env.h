// SPDX-License-Identifier: Apache-2.0
//
// For tests: an Env that passes every call on to another Env, except calls that a test wants to fail, to be slow, or to
// end badly.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix {

enum class Operation {
  kReadFile,
  kOpenFile,
  kMakeScratchFile,
  kWriteFile,
  kWriteFileDurably,
  kStat,
  kListDirectory,
  kCreateDirectories,
  kCreateTempDirectory,
  kSetModificationTime,
  kRemoveFile,
  kRemoveTree,
  kRename,
  kSyncDirectory,
  kCreateSymlink,
  kReadLink,
  kRealPath,
  kLockFile,  // and TryLockFile
  kFreeBytes,
  kOnNetworkFileSystem,
  kHasAccessList,
  kRunProcess,
};

// A fault and the calls that it affects. Create one with the functions below.
struct Fault {
  Operation operation = Operation::kReadFile;
  std::string match;  // part of the path (Rename: of either path; RunProcess: of the command line); empty: every call
  int nth = 1;        // the first matching call that it affects, counted from 1 since its injection
  int times = 1;      // how many calls it affects from there on; 0: all

  std::function<void()> before = nullptr;     // runs before the call, in the calling thread, without a lock held
  bool take_effect = false;                   // with `error`: passes the call on first
  absl::Status error = absl::OkStatus();      // returned instead of the call's own result
  std::optional<ProcessResult> process = {};  // RunProcess returns it without running the program
};

// The disk is full: kResourceExhausted, as Env::Posix() reports it.
Fault NoSpace(Operation operation, std::string match, int nth = 1);
// A sync in WriteFileDurably() fails. With `renamed`, only the sync of the folder fails, after the new content is in
// place.
Fault FailedSync(std::string match, int nth = 1, bool renamed = false);
// The file or program cannot be used: kPermissionDenied.
Fault Forbidden(Operation operation, std::string match, int nth = 1);
// The program ends at once with `exit_code` and `output`.
Fault FailingChild(std::string match, int exit_code, std::string output = "", int nth = 1);
// `signal` kills the program at once.
Fault KilledChild(std::string match, int signal = 9, int nth = 1);
// The call waits until `until_done` returns: a slow disk, or a slow compiler.
Fault Slow(Operation operation, std::string match, std::function<void()> until_done, int nth = 1);

// `base` must outlive it. Calls about the clock and about users go through unchanged.
class FaultEnv : public Env {
 public:
  explicit FaultEnv(Env& base) : base_(base) {}

  // If several faults match a call, all their `before` functions run; the fault that was injected first decides the
  // result.
  void Inject(Fault fault);
  void Clear();

  // How many calls a fault has affected so far, so that a test can check that its fault happened.
  int Hits() const;
  // How many calls of this kind had a text that contains `match`.
  int Calls(Operation operation, std::string_view match = "") const;

  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ScratchFile>> MakeScratchFile(const std::string& folder, uint64_t capacity) override;
  absl::Status WriteFile(const std::string& path, std::string_view data, mode_t mode) override;
  absl::Status WriteFileDurably(const std::string& path, std::string_view data, mode_t mode) override;
  absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow = true) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  absl::Status CreateDirectories(const std::string& path, mode_t mode) override;
  absl::StatusOr<std::string> CreateTempDirectory(const std::string& prefix) override;
  absl::Status SetModificationTime(const std::string& path, int64_t unix_ns) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveTree(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status CreateSymlink(const std::string& target, const std::string& path) override;
  absl::StatusOr<std::string> ReadLink(const std::string& path) override;
  absl::StatusOr<std::string> RealPath(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> TryLockFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> LockFile(const std::string& path, MonotonicTime deadline) override;
  absl::StatusOr<uint64_t> FreeBytes(const std::string& path) override;
  absl::StatusOr<bool> OnNetworkFileSystem(const std::string& path) override;
  absl::StatusOr<bool> HasAccessList(const std::string& path) override;
  bool IsPrivateGroup(gid_t group, uid_t user) override { return base_.IsPrivateGroup(group, user); }
  MonotonicTime Now() override { return base_.Now(); }
  int64_t UnixMillis() override { return base_.UnixMillis(); }
  absl::StatusOr<ProcessResult> RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                           Cancellation* cancellation) override;

 private:
  struct Injected {
    Fault fault;
    int seen = 0;  // matching calls so far
  };
  struct Call {
    Operation operation;
    std::string text;
  };

  // Counts the call and runs the `before` functions. Returns the fault that decides the call's result, if there is one.
  std::optional<Fault> Hit(Operation operation, const std::string& text);
  std::vector<Fault> Record(Operation operation, const std::string& text);
  // Runs `call`, or applies the fault to it. Result is absl::Status or an absl::StatusOr.
  template <typename Result>
  Result Pass(Operation operation, const std::string& text, const std::function<Result()>& call);

  Env& base_;
  mutable Mutex mutex_;
  std::vector<Injected> faults_ ABSL_GUARDED_BY(mutex_);
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
  int hits_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix
