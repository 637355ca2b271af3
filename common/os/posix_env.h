// SPDX-License-Identifier: Apache-2.0
//
// Env::Posix(), see env.h for its contract. Each posix_*.cc has the methods of one subject.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::posix {

class PosixEnv : public Env {
 public:
  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(const std::string& path) override;
  // A file that is written through its descriptor and read through a mapping.
  absl::StatusOr<std::unique_ptr<ScratchFile>> MakeScratchFile(const std::string& folder, uint64_t capacity) override;
  absl::Status WriteFile(const std::string& path, std::string_view data, mode_t mode) override;
  absl::Status WriteFileDurably(const std::string& path, std::string_view data, mode_t mode) override;
  absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow) override;
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
  // The kernel notes a change before the system call that makes it returns, and Changed() asks it with one system call.
  // Nobody is woken meanwhile. It watches the file, and each folder and link on its way, not the names in folders: so
  // it hears nothing of other files in them.
  //
  // It does not watch a missing file, a file that is not regular, on a file system that others than this kernel may
  // change, or unreadable for this user; nor more than kMostWatches files and folders. Any mount counts as a change.
  //
  // Two things escape it. Writes to mapped memory or by asynchronous I/O show when the program closes the file. If a
  // folder may not be searched any more, that does not show; the file in it is the same.
  //
  // Null if the kernel grants none: users have a limited number.
  std::unique_ptr<FileWatch> WatchFiles() override;

  absl::StatusOr<bool> HasAccessList(const std::string& path) override;
  bool IsPrivateGroup(gid_t group, uid_t user) override;

  MonotonicTime Now() override;
  int64_t UnixMillis() override;

  absl::StatusOr<ProcessResult> RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                           Cancellation* cancellation) override;
};

// Of the user's, whose other programs need some, too.
inline constexpr size_t kMostWatches = 4096;

}  // namespace kernix::posix
