// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fault_env.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"
#include "common/os/posix_error.h"

namespace kernix {
namespace {

bool Fits(const Fault& fault, Operation operation, const std::string& text) {
  return fault.operation == operation && text.find(fault.match) != std::string::npos;
}

bool IsHit(const Fault& fault, int seen) {
  return seen >= fault.nth && (fault.times == 0 || seen < fault.nth + fault.times);
}

bool Decides(const Fault& fault) { return !fault.error.ok() || fault.process.has_value(); }

}  // namespace

Fault NoSpace(Operation operation, std::string match, int nth) {
  absl::Status error = ErrnoStatus(ENOSPC, "write", match);
  return {.operation = operation, .match = std::move(match), .nth = nth, .error = std::move(error)};
}

Fault FailedSync(std::string match, int nth, bool renamed) {
  absl::Status error = ErrnoStatus(EIO, "sync", match);
  return {.operation = Operation::kWriteFileDurably,
          .match = std::move(match),
          .nth = nth,
          .take_effect = renamed,
          .error = std::move(error)};
}

Fault Forbidden(Operation operation, std::string match, int nth) {
  absl::Status error = ErrnoStatus(EACCES, "use", match);
  return {.operation = operation, .match = std::move(match), .nth = nth, .error = std::move(error)};
}

Fault FailingChild(std::string match, int exit_code, std::string output, int nth) {
  return {.operation = Operation::kRunProcess,
          .match = std::move(match),
          .nth = nth,
          .process = ProcessResult{.exit_code = exit_code, .output = std::move(output)}};
}

Fault KilledChild(std::string match, int signal, int nth) {
  return {.operation = Operation::kRunProcess,
          .match = std::move(match),
          .nth = nth,
          .process = ProcessResult{.exit_code = 128 + signal, .signal = signal}};
}

Fault Slow(Operation operation, std::string match, std::function<void()> until_done, int nth) {
  return {.operation = operation, .match = std::move(match), .nth = nth, .before = std::move(until_done)};
}

void FaultEnv::Inject(Fault fault) {
  MutexLock lock(mutex_);
  faults_.push_back({.fault = std::move(fault)});
}

void FaultEnv::Clear() {
  MutexLock lock(mutex_);
  faults_.clear();
}

int FaultEnv::Hits() const {
  MutexLock lock(mutex_);
  return hits_;
}

int FaultEnv::Calls(Operation operation, std::string_view match) const {
  MutexLock lock(mutex_);
  int count = 0;
  for (const Call& call : calls_) {
    if (call.operation == operation && call.text.find(match) != std::string::npos) ++count;
  }
  return count;
}

std::vector<Fault> FaultEnv::Record(Operation operation, const std::string& text) {
  MutexLock lock(mutex_);
  calls_.push_back({operation, text});
  std::vector<Fault> hit;
  for (Injected& injected : faults_) {
    if (Fits(injected.fault, operation, text) && IsHit(injected.fault, ++injected.seen)) hit.push_back(injected.fault);
  }
  if (!hit.empty()) ++hits_;
  return hit;
}

std::optional<Fault> FaultEnv::Hit(Operation operation, const std::string& text) {
  std::optional<Fault> decisive;
  for (Fault& fault : Record(operation, text)) {
    if (fault.before) fault.before();
    if (!decisive && Decides(fault)) decisive = std::move(fault);
  }
  return decisive;
}

template <typename Result>
Result FaultEnv::Pass(Operation operation, const std::string& text, const std::function<Result()>& call) {
  const std::optional<Fault> fault = Hit(operation, text);
  if (!fault) return call();
  if (fault->take_effect) {
    Result result = call();
    if (!result.ok()) return result;
  }
  return fault->error;
}

absl::StatusOr<std::string> FaultEnv::ReadFile(const std::string& path) {
  return Pass<absl::StatusOr<std::string>>(Operation::kReadFile, path, [&] { return base_.ReadFile(path); });
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FaultEnv::OpenFile(const std::string& path) {
  return Pass<absl::StatusOr<std::unique_ptr<ReadableFile>>>(Operation::kOpenFile, path,
                                                             [&] { return base_.OpenFile(path); });
}

absl::StatusOr<std::unique_ptr<ScratchFile>> FaultEnv::MakeScratchFile(const std::string& folder, uint64_t capacity) {
  return Pass<absl::StatusOr<std::unique_ptr<ScratchFile>>>(Operation::kMakeScratchFile, folder,
                                                            [&] { return base_.MakeScratchFile(folder, capacity); });
}

absl::Status FaultEnv::WriteFile(const std::string& path, std::string_view data, mode_t mode) {
  return Pass<absl::Status>(Operation::kWriteFile, path, [&] { return base_.WriteFile(path, data, mode); });
}

absl::Status FaultEnv::WriteFileDurably(const std::string& path, std::string_view data, mode_t mode) {
  return Pass<absl::Status>(Operation::kWriteFileDurably, path,
                            [&] { return base_.WriteFileDurably(path, data, mode); });
}

absl::StatusOr<FileInfo> FaultEnv::Stat(const std::string& path, bool follow) {
  return Pass<absl::StatusOr<FileInfo>>(Operation::kStat, path, [&] { return base_.Stat(path, follow); });
}

absl::StatusOr<std::vector<std::string>> FaultEnv::ListDirectory(const std::string& path) {
  return Pass<absl::StatusOr<std::vector<std::string>>>(Operation::kListDirectory, path,
                                                        [&] { return base_.ListDirectory(path); });
}

absl::Status FaultEnv::CreateDirectories(const std::string& path, mode_t mode) {
  return Pass<absl::Status>(Operation::kCreateDirectories, path, [&] { return base_.CreateDirectories(path, mode); });
}

absl::StatusOr<std::string> FaultEnv::CreateTempDirectory(const std::string& prefix) {
  return Pass<absl::StatusOr<std::string>>(Operation::kCreateTempDirectory, prefix,
                                           [&] { return base_.CreateTempDirectory(prefix); });
}

absl::Status FaultEnv::SetModificationTime(const std::string& path, int64_t unix_ns) {
  return Pass<absl::Status>(Operation::kSetModificationTime, path,
                            [&] { return base_.SetModificationTime(path, unix_ns); });
}

absl::Status FaultEnv::RemoveFile(const std::string& path) {
  return Pass<absl::Status>(Operation::kRemoveFile, path, [&] { return base_.RemoveFile(path); });
}

absl::Status FaultEnv::RemoveTree(const std::string& path) {
  return Pass<absl::Status>(Operation::kRemoveTree, path, [&] { return base_.RemoveTree(path); });
}

absl::Status FaultEnv::Rename(const std::string& from, const std::string& to) {
  return Pass<absl::Status>(Operation::kRename, StrCat(from, " ", to), [&] { return base_.Rename(from, to); });
}

absl::Status FaultEnv::SyncDirectory(const std::string& path) {
  return Pass<absl::Status>(Operation::kSyncDirectory, path, [&] { return base_.SyncDirectory(path); });
}

absl::Status FaultEnv::CreateSymlink(const std::string& target, const std::string& path) {
  return Pass<absl::Status>(Operation::kCreateSymlink, path, [&] { return base_.CreateSymlink(target, path); });
}

absl::StatusOr<std::string> FaultEnv::ReadLink(const std::string& path) {
  return Pass<absl::StatusOr<std::string>>(Operation::kReadLink, path, [&] { return base_.ReadLink(path); });
}

absl::StatusOr<std::string> FaultEnv::RealPath(const std::string& path) {
  return Pass<absl::StatusOr<std::string>>(Operation::kRealPath, path, [&] { return base_.RealPath(path); });
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultEnv::TryLockFile(const std::string& path) {
  return Pass<absl::StatusOr<std::unique_ptr<FileLock>>>(Operation::kLockFile, path,
                                                         [&] { return base_.TryLockFile(path); });
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultEnv::LockFile(const std::string& path, MonotonicTime deadline) {
  return Pass<absl::StatusOr<std::unique_ptr<FileLock>>>(Operation::kLockFile, path,
                                                         [&] { return base_.LockFile(path, deadline); });
}

absl::StatusOr<uint64_t> FaultEnv::FreeBytes(const std::string& path) {
  return Pass<absl::StatusOr<uint64_t>>(Operation::kFreeBytes, path, [&] { return base_.FreeBytes(path); });
}

absl::StatusOr<bool> FaultEnv::OnNetworkFileSystem(const std::string& path) {
  return Pass<absl::StatusOr<bool>>(Operation::kOnNetworkFileSystem, path,
                                    [&] { return base_.OnNetworkFileSystem(path); });
}

absl::StatusOr<bool> FaultEnv::HasAccessList(const std::string& path) {
  return Pass<absl::StatusOr<bool>>(Operation::kHasAccessList, path, [&] { return base_.HasAccessList(path); });
}

absl::StatusOr<ProcessResult> FaultEnv::RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                                   Cancellation* cancellation) {
  const std::optional<Fault> fault = Hit(Operation::kRunProcess, absl::StrJoin(spec.argv, " "));
  if (!fault) return base_.RunProcess(spec, on_output, cancellation);
  if (!fault->error.ok()) return fault->error;
  if (on_output && !fault->process->output.empty()) on_output(fault->process->output);
  return *fault->process;
}

}  // namespace kernix
