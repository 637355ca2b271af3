// SPDX-License-Identifier: Apache-2.0
#include "common/os/posix_env.h"

#include "common/os/env.h"

namespace kernix {
namespace {

class PosixEnv : public Env {
 public:
  absl::StatusOr<std::string> ReadFile(const std::string& path) override { return posix::ReadFile(path); }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(const std::string& path) override {
    return posix::OpenFile(path);
  }
  absl::StatusOr<std::unique_ptr<ScratchFile>> MakeScratchFile(const std::string& folder, uint64_t capacity) override {
    return posix::MakeScratchFile(folder, capacity);
  }
  absl::Status WriteFile(const std::string& path, std::string_view data, mode_t mode) override {
    return posix::WriteFile(path, data, mode);
  }
  absl::Status WriteFileDurably(const std::string& path, std::string_view data, mode_t mode) override {
    return posix::WriteFileDurably(path, data, mode);
  }
  absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow) override { return posix::Stat(path, follow); }
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override {
    return posix::ListDirectory(path);
  }
  absl::Status CreateDirectories(const std::string& path, mode_t mode) override {
    return posix::CreateDirectories(path, mode);
  }
  absl::StatusOr<std::string> CreateTempDirectory(const std::string& prefix) override {
    return posix::CreateTempDirectory(prefix);
  }
  absl::Status SetModificationTime(const std::string& path, int64_t unix_seconds) override {
    return posix::SetModificationTime(path, unix_seconds);
  }
  absl::Status RemoveFile(const std::string& path) override { return posix::RemoveFile(path); }
  absl::Status RemoveTree(const std::string& path) override { return posix::RemoveTree(path); }
  absl::Status Rename(const std::string& from, const std::string& to) override { return posix::Rename(from, to); }
  absl::Status SyncDirectory(const std::string& path) override { return posix::SyncDirectory(path); }
  absl::Status CreateSymlink(const std::string& target, const std::string& path) override {
    return posix::CreateSymlink(target, path);
  }
  absl::StatusOr<std::string> ReadLink(const std::string& path) override { return posix::ReadLink(path); }
  absl::StatusOr<std::string> RealPath(const std::string& path) override { return posix::RealPath(path); }
  absl::StatusOr<std::unique_ptr<FileLock>> TryLockFile(const std::string& path) override {
    return posix::TryLockFile(path);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> LockFile(const std::string& path, MonotonicTime deadline) override {
    return posix::LockFile(path, deadline);
  }
  absl::StatusOr<uint64_t> FreeBytes(const std::string& path) override { return posix::FreeBytes(path); }
  absl::StatusOr<bool> OnNetworkFileSystem(const std::string& path) override {
    return posix::OnNetworkFileSystem(path);
  }
  std::unique_ptr<FileWatch> WatchFiles() override { return posix::WatchFiles(); }

  absl::StatusOr<bool> HasAccessList(const std::string& path) override { return posix::HasAccessList(path); }
  bool IsPrivateGroup(gid_t group, uid_t user) override { return posix::IsPrivateGroup(group, user); }

  MonotonicTime Now() override { return std::chrono::steady_clock::now(); }
  int64_t UnixMillis() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  }

  absl::StatusOr<ProcessResult> RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                           Cancellation* cancellation) override {
    return posix::RunProcess(spec, on_output, cancellation);
  }
};

}  // namespace

Env& Env::Posix() {
  static PosixEnv* const env = new PosixEnv;  // never destroyed: threads may use it while the process exits
  return *env;
}

}  // namespace kernix
