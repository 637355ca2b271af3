// SPDX-License-Identifier: Apache-2.0
//
// The parts of Env::Posix(), each in a file of its own; see env.h for their contracts.
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

absl::StatusOr<std::string> ReadFile(const std::string& path);
absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(const std::string& path);
absl::Status WriteFile(const std::string& path, std::string_view data, mode_t mode);
absl::Status WriteFileDurably(const std::string& path, std::string_view data, mode_t mode);
absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow);
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);
absl::Status CreateDirectories(const std::string& path, mode_t mode);
absl::StatusOr<std::string> CreateTempDirectory(const std::string& prefix);
absl::Status SetModificationTime(const std::string& path, int64_t unix_seconds);
absl::Status RemoveFile(const std::string& path);
absl::Status RemoveTree(const std::string& path);
absl::Status Rename(const std::string& from, const std::string& to);
absl::Status SyncDirectory(const std::string& path);
absl::Status CreateSymlink(const std::string& target, const std::string& path);
absl::StatusOr<std::string> ReadLink(const std::string& path);
absl::StatusOr<std::string> RealPath(const std::string& path);
absl::StatusOr<bool> HasAccessList(const std::string& path);
absl::StatusOr<uint64_t> FreeBytes(const std::string& path);
absl::StatusOr<bool> OnNetworkFileSystem(const std::string& path);

// Env::Posix()'s ScratchFile: a file that is written through its descriptor and read through a mapping.
absl::StatusOr<std::unique_ptr<ScratchFile>> MakeScratchFile(const std::string& folder, uint64_t capacity);

// Locks.
absl::StatusOr<std::unique_ptr<FileLock>> TryLockFile(const std::string& path);
absl::StatusOr<std::unique_ptr<FileLock>> LockFile(const std::string& path, MonotonicTime deadline);

// See Env::RunProcess().
absl::StatusOr<ProcessResult> RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                         Cancellation* cancellation);

// Starts `spec` as the leader of its own process group: stdin from /dev/null, stdout and stderr to `output_fd`, no
// other descriptor, default signal handling, no blocked signals, no core files. The kernel kills the program when the
// calling *thread* ends, so that no compiler outlives a killed daemon. The caller must therefore stay alive until it
// has reaped the child.
//
// Returns kNotFound or kPermissionDenied if the program or its folder cannot be used.
absl::StatusOr<pid_t> Spawn(const ProcessSpec& spec, int output_fd);

// The user database.
bool IsPrivateGroup(gid_t group, uid_t user);

// Of the user's, whose other programs need some, too.
inline constexpr size_t kMostWatches = 4096;

// The kernel notes a change before the system call that makes it returns, and Changed() asks it with one system call.
// Nobody is woken meanwhile. It watches the file, and each folder and link on its way, not the names in folders: so it
// hears nothing of other files in them.
//
// It does not take on what is missing or no regular file, what lies on a file system that others than this kernel may
// change, and what this user may not read; nor more than kMostWatches files and folders. Any mount counts as a change.
//
// Two things escape it. What a program writes to mapped memory or by asynchronous I/O shows when it closes the file. If
// a folder may not be searched any more, that does not show; the file in it is the same.
//
// Null if the kernel grants none: users have a limited number.
std::unique_ptr<FileWatch> WatchFiles();

}  // namespace kernix::posix
