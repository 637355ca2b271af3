// SPDX-License-Identifier: Apache-2.0
#include "tests/support/mem_env.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "common/os/posix_error.h"
#include "common/os/private_directory.h"

namespace kernix {
namespace {

class MemFile : public ReadableFile {
 public:
  MemFile(FileInfo info, std::string content) : info_(info), content_(std::move(content)) {}
  absl::StatusOr<FileInfo> Stat() override { return info_; }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override {
    return offset < content_.size() ? content_.copy(buffer.data(), buffer.size(), offset) : 0;
  }

 private:
  const FileInfo info_;
  const std::string content_;
};

class MemScratchFile : public ScratchFile {
 public:
  explicit MemScratchFile(uint64_t capacity) : capacity_(capacity) {}
  absl::StatusOr<std::string_view> Write(uint64_t offset, std::string_view bytes) override {
    if (offset > capacity_ || bytes.size() > capacity_ - offset) {
      return absl::InternalError("no room in a scratch file");
    }
    const MutexLock lock(mutex_);
    return parts_[offset] = bytes;
  }
  void Free(uint64_t offset, uint64_t size) override {
    const MutexLock lock(mutex_);
    parts_.erase(parts_.lower_bound(offset), parts_.lower_bound(offset + size));
  }

 private:
  const uint64_t capacity_;
  Mutex mutex_;
  std::map<uint64_t, std::string> parts_ ABSL_GUARDED_BY(mutex_);  // by offset
};

// A round time in 2023, so that times in test output are easy to read.
constexpr int64_t kStartUnixMillis = 1'700'000'000'000;

// The keys of a folder's contents lie between the folder's key with '/' appended and its key with the next character
// appended.
std::string FirstBelow(const std::string& key) { return key == "/" ? "/" : key + '/'; }
std::string PastBelow(const std::string& key) { return (key == "/" ? "" : key) + static_cast<char>('/' + 1); }

bool IsBelow(const std::string& key, const std::string& folder) {
  return key.size() > FirstBelow(folder).size() && key.starts_with(FirstBelow(folder));
}

std::string JoinParts(const std::vector<std::string>& parts, size_t first) {
  std::string joined;
  for (size_t i = first; i < parts.size(); ++i) joined = JoinPath(joined, parts[i]);
  return joined;
}

}  // namespace

// --- For the test ----------------------------------------------------------------------------------------------------

void MemEnv::AdvanceClock(Duration by) {
  MutexLock lock(mutex_);
  elapsed_ += by;
  clock_or_locks_changed_.NotifyAll();
}

void MemEnv::SetProgram(const std::string& path, Program program) {
  MutexLock lock(mutex_);
  programs_[path] = std::move(program);
}

std::vector<ProcessSpec> MemEnv::Processes() const {
  MutexLock lock(mutex_);
  return processes_;
}

void MemEnv::SetOwner(const std::string& path, uid_t uid) {
  MutexLock lock(mutex_);
  MustFind(path).info.uid = uid;
}

void MemEnv::SetMode(const std::string& path, mode_t mode) {
  MutexLock lock(mutex_);
  MustFind(path).info.mode = mode;
}

void MemEnv::SetGroup(const std::string& path, gid_t gid) {
  MutexLock lock(mutex_);
  MustFind(path).info.gid = gid;
}

void MemEnv::SetAccessList(const std::string& path) {
  MutexLock lock(mutex_);
  MustFind(path).has_access_list = true;
}

void MemEnv::SetPrivateGroup(gid_t group, uid_t user) {
  MutexLock lock(mutex_);
  private_groups_.emplace(group, user);
}

void MemEnv::SetUid(uid_t uid) {
  MutexLock lock(mutex_);
  uid_ = uid;
}

void MemEnv::SetFreeBytes(uint64_t bytes) {
  MutexLock lock(mutex_);
  free_bytes_ = bytes;
}

void MemEnv::AddNetworkFileSystem(const std::string& path) {
  MutexLock lock(mutex_);
  network_.push_back(NormalizePath(path));
}

// --- Nodes -----------------------------------------------------------------------------------------------------------

MemEnv::Node MemEnv::RootNode() {
  return {.info = {.type = FileType::kDirectory, .inode = 1, .device = 1, .mode = 0755}};
}

absl::StatusOr<std::string> MemEnv::Resolve(const std::string& path, bool follow, int links_left) const {
  const std::vector<std::string> parts = absl::StrSplit(NormalizePath(path), '/', absl::SkipEmpty());
  std::string key = "/";
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const std::string folder = std::exchange(key, JoinPath(key, parts[i]));
    const auto node = nodes_.find(key);
    if (node == nodes_.end()) return last ? absl::StatusOr<std::string>(key) : ErrnoStatus(ENOENT, "open", path);
    if (node->second.info.type == FileType::kSymlink && (follow || !last)) {
      if (links_left == 0) return ErrnoStatus(ELOOP, "open", path);
      const std::string& target = node->second.content;
      const std::string start = target.starts_with('/') ? target : JoinPath(folder, target);
      return Resolve(JoinPath(start, JoinParts(parts, i + 1)), follow, links_left - 1);
    }
    if (!last && node->second.info.type != FileType::kDirectory) return ErrnoStatus(ENOTDIR, "open", path);
  }
  return key;
}

MemEnv::Node* MemEnv::Find(const std::string& key) {
  const auto it = nodes_.find(key);
  return it == nodes_.end() ? nullptr : &it->second;
}

MemEnv::Node& MemEnv::MustFind(const std::string& path) {
  const absl::StatusOr<std::string> key = Resolve(path, /*follow=*/true);
  Node* node = key.ok() ? Find(*key) : nullptr;
  if (node != nullptr) return *node;
  absl::FPrintF(stderr, "MemEnv: the test names %s, which does not exist\n", path);
  std::abort();
}

MemEnv::Node& MemEnv::Put(const std::string& key, FileType type, std::string_view content, mode_t mode) {
  Node& node = nodes_[key];
  const int64_t now = ChangeTime();
  node = {.info = {.type = type,
                   .size = content.size(),
                   .mtime_ns = now,
                   .ctime_ns = now,
                   .inode = next_inode_++,
                   .device = 1,
                   .uid = uid_,
                   .gid = uid_,
                   .mode = mode},
          .content = std::string(content)};
  return node;
}

int64_t MemEnv::ChangeTime() {
  return (kStartUnixMillis + elapsed_.count()) * 1'000'000 + static_cast<int64_t>(++changes_);
}

bool MemEnv::HasEntries(const std::string& key) const {
  const auto it = nodes_.upper_bound(FirstBelow(key));
  return it != nodes_.end() && IsBelow(it->first, key);
}

void MemEnv::EraseTree(const std::string& key) {
  nodes_.erase(nodes_.upper_bound(FirstBelow(key)), nodes_.lower_bound(PastBelow(key)));
  if (key != "/") nodes_.erase(key);
}

// --- Files -----------------------------------------------------------------------------------------------------------

absl::StatusOr<std::string> MemEnv::ReadFile(const std::string& path) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/true));
  const Node* node = Find(key);
  if (node == nullptr) return ErrnoStatus(ENOENT, "open", path);
  if (node->info.type != FileType::kRegular) return ErrnoStatus(EISDIR, "read", path);
  return node->content;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemEnv::OpenFile(const std::string& path) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/false));
  const Node* node = Find(key);
  if (node == nullptr) return ErrnoStatus(ENOENT, "open", path);
  if (node->info.type != FileType::kRegular) return ErrnoStatus(ELOOP, "open", path);
  return std::make_unique<MemFile>(node->info, node->content);
}

absl::StatusOr<std::unique_ptr<ScratchFile>> MemEnv::MakeScratchFile(const std::string& folder, uint64_t capacity) {
  const MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(folder, /*follow=*/true));
  if (Find(key) == nullptr) return ErrnoStatus(ENOENT, "create a file in", folder);
  return std::make_unique<MemScratchFile>(capacity);
}

absl::Status MemEnv::WriteFile(const std::string& path, std::string_view data, mode_t mode) {
  return Write(path, data, mode, /*replace=*/false);
}

absl::Status MemEnv::WriteFileDurably(const std::string& path, std::string_view data, mode_t mode) {
  return Write(path, data, mode, /*replace=*/true);
}

// With `replace`, a new file takes the name; otherwise, the existing file gets the new content.
absl::Status MemEnv::Write(const std::string& path, std::string_view data, mode_t mode, bool replace) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/!replace));
  const Node* old = Find(key);
  if (old != nullptr && old->info.type == FileType::kDirectory) return ErrnoStatus(EISDIR, "create", path);
  const uint64_t inode = old != nullptr && !replace ? old->info.inode : next_inode_++;
  Put(key, FileType::kRegular, data, mode).info.inode = inode;
  return absl::OkStatus();
}

absl::StatusOr<FileInfo> MemEnv::Stat(const std::string& path, bool follow) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, follow));
  const Node* node = Find(key);
  if (node == nullptr) return ErrnoStatus(ENOENT, "stat", path);
  return node->info;
}

absl::StatusOr<std::vector<std::string>> MemEnv::ListDirectory(const std::string& path) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/true));
  const Node* node = Find(key);
  if (node == nullptr) return ErrnoStatus(ENOENT, "list", path);
  if (node->info.type != FileType::kDirectory) return ErrnoStatus(ENOTDIR, "list", path);
  std::vector<std::string> names;
  const auto end = nodes_.lower_bound(PastBelow(key));
  for (auto it = nodes_.upper_bound(FirstBelow(key)); it != end; ++it) {
    if (Dirname(it->first) == key) names.push_back(Basename(it->first));
  }
  return names;
}

absl::Status MemEnv::CreateDirectories(const std::string& path, mode_t mode) {
  const std::string parent = Dirname(NormalizePath(path));
  if (parent != NormalizePath(path)) KERNIX_RETURN_IF_ERROR(CreateDirectories(parent, mode));
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/true));
  const Node* node = Find(key);
  if (node == nullptr) {
    Put(key, FileType::kDirectory, "", mode);
  } else if (node->info.type != FileType::kDirectory) {
    return ErrnoStatus(EEXIST, "create the folder", path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemEnv::CreateTempDirectory(const std::string& prefix) {
  MutexLock lock(mutex_);
  const std::string path = absl::StrFormat("%s%06d", prefix, next_inode_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/false));
  if (Find(key) != nullptr) return ErrnoStatus(EEXIST, "create a folder", path);
  Put(key, FileType::kDirectory, "", 0700);
  return path;
}

absl::Status MemEnv::SetModificationTime(const std::string& path, int64_t unix_ns) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/true));
  Node* node = Find(key);
  if (node == nullptr) return ErrnoStatus(ENOENT, "set the time of", path);
  node->info.mtime_ns = unix_ns;
  node->info.ctime_ns = ChangeTime();
  return absl::OkStatus();
}

absl::Status MemEnv::RemoveFile(const std::string& path) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/false));
  const Node* node = Find(key);
  if (node == nullptr) return ErrnoStatus(ENOENT, "remove", path);
  if (node->info.type == FileType::kDirectory) return ErrnoStatus(EISDIR, "remove", path);
  nodes_.erase(key);
  return absl::OkStatus();
}

absl::Status MemEnv::RemoveTree(const std::string& path) {
  MutexLock lock(mutex_);
  const absl::StatusOr<std::string> key = Resolve(path, /*follow=*/false);
  if (absl::IsNotFound(key.status())) return absl::OkStatus();
  if (!key.ok()) return key.status();
  EraseTree(*key);
  return absl::OkStatus();
}

absl::Status MemEnv::SyncDirectory(const std::string& path) { return Stat(path, /*follow=*/true).status(); }

absl::Status MemEnv::CreateSymlink(const std::string& target, const std::string& path) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/false));
  if (Find(key) != nullptr) return ErrnoStatus(EEXIST, "create the link", path);
  Put(key, FileType::kSymlink, target, 0777);
  return absl::OkStatus();
}

absl::Status MemEnv::CheckRename(const std::string& from, const std::string& to) {
  const Node* source = Find(from);
  const Node* target = Find(to);
  const std::string both = StrCat(from, " to ", to);
  if (source == nullptr) return ErrnoStatus(ENOENT, "rename", both);
  if (IsBelow(to, from)) return ErrnoStatus(EINVAL, "rename", both);
  if (target == nullptr) return absl::OkStatus();
  const bool from_folder = source->info.type == FileType::kDirectory;
  const bool to_folder = target->info.type == FileType::kDirectory;
  if (!from_folder && to_folder) return ErrnoStatus(EISDIR, "rename", both);
  if (from_folder && !to_folder) return ErrnoStatus(ENOTDIR, "rename", both);
  if (to_folder && HasEntries(to)) return ErrnoStatus(ENOTEMPTY, "rename", both);
  return absl::OkStatus();
}

absl::Status MemEnv::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string from_key, Resolve(from, /*follow=*/false));
  KERNIX_ASSIGN_OR_RETURN(const std::string to_key, Resolve(to, /*follow=*/false));
  KERNIX_RETURN_IF_ERROR(CheckRename(from_key, to_key));
  if (from_key == to_key) return absl::OkStatus();
  nodes_.erase(to_key);
  std::map<std::string, Node> moved;
  for (auto it = nodes_.lower_bound(from_key); it != nodes_.lower_bound(PastBelow(from_key)); ++it) {
    if (it->first == from_key || IsBelow(it->first, from_key)) {
      moved[to_key + it->first.substr(from_key.size())] = it->second;
    }
  }
  EraseTree(from_key);
  moved[to_key].info.ctime_ns = ChangeTime();
  nodes_.merge(moved);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemEnv::ReadLink(const std::string& path) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/false));
  const Node* node = Find(key);
  if (node == nullptr) return ErrnoStatus(ENOENT, "read the link", path);
  if (node->info.type != FileType::kSymlink) return ErrnoStatus(EINVAL, "read the link", path);
  return node->content;
}

absl::StatusOr<bool> MemEnv::HasAccessList(const std::string& path) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/false));
  const Node* node = Find(key);
  if (node == nullptr) return ErrnoStatus(ENOENT, "read the access list of", path);
  return node->has_access_list;
}

bool MemEnv::IsPrivateGroup(gid_t group, uid_t user) {
  MutexLock lock(mutex_);
  return private_groups_.contains({group, user});
}

absl::StatusOr<std::string> MemEnv::RealPath(const std::string& path) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/true));
  if (Find(key) == nullptr) return ErrnoStatus(ENOENT, "resolve", path);
  return key;
}

absl::StatusOr<uint64_t> MemEnv::FreeBytes(const std::string& path) {
  KERNIX_RETURN_IF_ERROR(Stat(path, /*follow=*/true).status());
  MutexLock lock(mutex_);
  return free_bytes_;
}

absl::StatusOr<bool> MemEnv::OnNetworkFileSystem(const std::string& path) {
  const std::string canonical = CanonicalPath(*this, path);
  MutexLock lock(mutex_);
  for (const std::string& root : network_) {
    if (canonical == root || IsBelow(canonical, root)) return true;
  }
  return false;
}

namespace {

// A FileWatch that looks.
class LookingWatch : public FileWatch {
 public:
  explicit LookingWatch(Env& env) : env_(env) {}

  bool Add(const std::string& path) override {
    WatchedFile file = StateOf(env_, path);
    if (!file.identity || *env_.OnNetworkFileSystem(path)) return false;
    files_.push_back(std::move(file));
    return true;
  }

  bool Changed() override {
    if (Unchanged(env_, files_)) return false;
    files_.clear();
    return true;
  }

 private:
  Env& env_;
  std::vector<WatchedFile> files_;
};

}  // namespace

std::unique_ptr<FileWatch> MemEnv::WatchFiles() { return std::make_unique<LookingWatch>(*this); }

// --- Locks -----------------------------------------------------------------------------------------------------------

class MemEnv::Lock : public FileLock {
 public:
  Lock(MemEnv& env, std::string key) : env_(env), key_(std::move(key)) {}
  ~Lock() override {
    MutexLock lock(env_.mutex_);
    env_.locks_.erase(key_);
    env_.clock_or_locks_changed_.NotifyAll();
  }

 private:
  MemEnv& env_;
  const std::string key_;
};

absl::StatusOr<std::unique_ptr<FileLock>> MemEnv::TryLockFile(const std::string& path) {
  MutexLock lock(mutex_);
  KERNIX_ASSIGN_OR_RETURN(const std::string key, Resolve(path, /*follow=*/false));
  if (Find(key) == nullptr) Put(key, FileType::kRegular, "", 0600);
  if (!locks_.insert(key).second) return absl::UnavailableError(StrCat("another process holds the lock ", path));
  return std::make_unique<Lock>(*this, key);
}

absl::StatusOr<std::unique_ptr<FileLock>> MemEnv::LockFile(const std::string& path, MonotonicTime deadline) {
  while (true) {
    absl::StatusOr<std::unique_ptr<FileLock>> held = TryLockFile(path);
    if (!absl::IsUnavailable(held.status())) return held;
    MutexLock lock(mutex_);
    if (MonotonicTime(elapsed_) >= deadline) {
      return absl::DeadlineExceededError(StrCat("another process still holds the lock ", path));
    }
    const absl::StatusOr<std::string> key = Resolve(path, /*follow=*/false);
    if (key.ok() && locks_.contains(*key)) clock_or_locks_changed_.Wait(mutex_);
  }
}

// --- Clock and processes ---------------------------------------------------------------------------------------------

MonotonicTime MemEnv::Now() {
  MutexLock lock(mutex_);
  return MonotonicTime(elapsed_);
}

int64_t MemEnv::UnixMillis() {
  MutexLock lock(mutex_);
  return kStartUnixMillis + elapsed_.count();
}

absl::StatusOr<ProcessResult> MemEnv::RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                                 Cancellation* cancellation) {
  Program program;
  {
    MutexLock lock(mutex_);
    processes_.push_back(spec);
    if (spec.argv.empty()) return absl::InvalidArgumentError("a process without a program");
    const auto it = programs_.find(spec.argv[0]);
    if (it == programs_.end()) return ErrnoStatus(ENOENT, "run", spec.argv[0]);
    program = it->second;
  }
  KERNIX_ASSIGN_OR_RETURN(ProcessResult result, program(spec, cancellation));
  if (on_output && !result.output.empty()) on_output(result.output);
  if (cancellation != nullptr && cancellation->cancelled()) {
    return absl::CancelledError(StrCat(spec.argv[0], " was cancelled"));
  }
  return result;
}

}  // namespace kernix
