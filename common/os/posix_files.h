// SPDX-License-Identifier: Apache-2.0
//
// The file functions of Env::Posix(); see env.h for their contracts.
#pragma once

#include <sys/types.h>

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

}  // namespace kernix::posix
