// SPDX-License-Identifier: Apache-2.0
//
// For tests: an Env in memory. It has files in a map, a clock that moves only when a test moves it, and functions in
// place of programs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/os/env.h"

namespace kernix {

// Starts with an empty "/". Paths must be absolute; ".." is resolved lexically. Links work. Owners and modes are stored
// and reported, but never checked: use FaultEnv to refuse calls. Calls return the same errors as the operating system.
class MemEnv : public Env {
 public:
  // Replaces a program: receives the call, may use the MemEnv, and returns how the program ended. The caller's
  // OutputCallback also receives the result's `output`. A program that should hang waits for `cancellation` (which may
  // be null).
  using Program = std::function<absl::StatusOr<ProcessResult>(const ProcessSpec& spec, Cancellation* cancellation)>;

  // --- For the test ------------------------------------------------------------------------------------------------

  // Moves both clocks forward, so that waiting LockFile() calls check their deadlines.
  void AdvanceClock(Duration by);

  // Sets the program at `path` and replaces an earlier one. Running a path without a program returns kNotFound.
  void SetProgram(const std::string& path, Program program);
  // All RunProcess() calls so far, in order.
  std::vector<ProcessSpec> Processes() const;

  // These functions need an existing `path` and crash without it, because the test is wrong.
  void SetOwner(const std::string& path, uid_t uid);
  void SetMode(const std::string& path, mode_t mode);
  void SetGroup(const std::string& path, gid_t gid);
  // Gives `path` an access list.
  void SetAccessList(const std::string& path);

  // Makes `group` the private group of `user`. By default, no user has one.
  void SetPrivateGroup(gid_t group, uid_t user);

  // Sets the owner of all files and folders that are created from now on; their group gets the same number. Default:
  // 1000.
  void SetUid(uid_t uid);
  // Sets the result of FreeBytes(). Default: 1 TiB. Writing does not change it.
  void SetFreeBytes(uint64_t bytes);
  // Makes `path` and everything below it a network file system.
  void AddNetworkFileSystem(const std::string& path);

  // --- Env ---------------------------------------------------------------------------------------------------------

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
  // Takes files that are not on a network file system. The Env must outlive it.
  std::unique_ptr<FileWatch> WatchFiles() override;
  absl::StatusOr<bool> HasAccessList(const std::string& path) override;
  bool IsPrivateGroup(gid_t group, uid_t user) override;
  MonotonicTime Now() override;
  int64_t UnixMillis() override;
  absl::StatusOr<ProcessResult> RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                           Cancellation* cancellation) override;

 private:
  class Lock;

  struct Node {
    FileInfo info;
    std::string content;  // of a file; the target of a link
    bool has_access_list = false;
  };

  // The map's key for `path`. Follows links in its folders, and in its last component if `follow` is set. Only the last
  // component may be missing; otherwise returns kNotFound.
  absl::StatusOr<std::string> Resolve(const std::string& path, bool follow, int links_left = 40) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns null if there is no such node.
  Node* Find(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For the test's own calls: the node must exist.
  Node& MustFind(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Node& Put(const std::string& key, FileType type, std::string_view content, mode_t mode)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(const std::string& path, std::string_view data, mode_t mode, bool replace);
  absl::Status CheckRename(const std::string& from, const std::string& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasEntries(const std::string& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseTree(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A time that is later than that of every earlier change.
  int64_t ChangeTime() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Node RootNode();

  mutable Mutex mutex_;
  CondVar clock_or_locks_changed_;
  std::map<std::string, Node> nodes_ ABSL_GUARDED_BY(mutex_) = {{"/", RootNode()}};
  std::set<std::string> locks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Program> programs_ ABSL_GUARDED_BY(mutex_);
  std::vector<ProcessSpec> processes_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<gid_t, uid_t>> private_groups_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> network_ ABSL_GUARDED_BY(mutex_);
  Duration elapsed_ ABSL_GUARDED_BY(mutex_){0};
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_inode_ ABSL_GUARDED_BY(mutex_) = 2;
  uint64_t free_bytes_ ABSL_GUARDED_BY(mutex_) = uint64_t{1} << 40;
  uid_t uid_ ABSL_GUARDED_BY(mutex_) = 1000;
};

}  // namespace kernix
