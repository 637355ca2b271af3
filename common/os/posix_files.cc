// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_env.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"

namespace kernix::posix {
namespace {

absl::Status ReadAll(int fd, std::string& data, const std::string& path) {
  size_t used = 0;
  while (true) {
    if (used == data.size()) data.resize(std::max<size_t>(2 * data.size(), 4096));
    const ssize_t got = read(fd, data.data() + used, data.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read", path);
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  data.resize(used);
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t put = write(fd, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return ErrnoStatus(errno, "write", path);
    data.remove_prefix(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

// On some file systems, only close(2) reports that a write failed.
absl::Status Close(UniqueFd fd, const std::string& path) {
  if (close(fd.release()) != 0 && errno != EINTR) return ErrnoStatus(errno, "write", path);
  return absl::OkStatus();
}

absl::Status SyncFile(int fd, const std::string& path) {
  if (fsync(fd) != 0) return ErrnoStatus(errno, "sync", path);
  return absl::OkStatus();
}

absl::StatusOr<std::string> RandomSuffix() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) return ErrnoStatus(errno, "get", "random bytes");
  return StrCat(absl::Hex(bits, absl::kZeroPad16));
}

// Writes and syncs a new file. Sets exactly `mode`, whatever the umask.
absl::Status FillAndSync(UniqueFd fd, std::string_view data, mode_t mode, const std::string& path) {
  KERNIX_RETURN_IF_ERROR(WriteAll(fd.get(), data, path));
  if (fchmod(fd.get(), mode) != 0) return ErrnoStatus(errno, "set the mode of", path);
  KERNIX_RETURN_IF_ERROR(SyncFile(fd.get(), path));
  return Close(std::move(fd), path);
}

FileType TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kRegular;
  if (S_ISDIR(mode)) return FileType::kDirectory;
  if (S_ISLNK(mode)) return FileType::kSymlink;
  return FileType::kOther;
}

int64_t Nanoseconds(const struct timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

FileInfo InfoOf(const struct stat& info) {
  return {.type = TypeOf(info.st_mode),
          .size = static_cast<uint64_t>(info.st_size),
          .mtime_ns = Nanoseconds(info.st_mtim),
          .ctime_ns = Nanoseconds(info.st_ctim),
          .inode = info.st_ino,
          .device = info.st_dev,
          .uid = info.st_uid,
          .gid = info.st_gid,
          .mode = info.st_mode & 07777u};
}

// O_NONBLOCK makes open() refuse a named pipe instead of waiting for it.
absl::StatusOr<UniqueFd> OpenRegular(const std::string& path, int flags, struct stat& info) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
  if (!fd.ok()) return ErrnoStatus(errno, "open", path);
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) return absl::InternalError(StrCat("cannot read ", path, ": not a regular file"));
  return fd;
}

class PosixFile : public ReadableFile {
 public:
  PosixFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::StatusOr<FileInfo> Stat() override {
    struct stat info;
    if (fstat(fd_.get(), &info) != 0) return ErrnoStatus(errno, "stat", path_);
    return InfoOf(info);
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override {
    size_t used = 0;
    while (used < buffer.size()) {
      const ssize_t got = pread(fd_.get(), &buffer[used], buffer.size() - used, static_cast<off_t>(offset + used));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "read", path_);
      if (got == 0) break;
      used += static_cast<size_t>(got);
    }
    return used;
  }

 private:
  const UniqueFd fd_;
  const std::string path_;
};

absl::Status CreateDirectory(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) return absl::OkStatus();
  const int error = errno;
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return absl::OkStatus();
  return ErrnoStatus(error, "create the folder", path);
}

// Not of a link that leads to itself, nor of another user's: in /tmp, anybody can lay one.
std::optional<std::string> TargetOfDanglingLink(const std::string& path) {
  struct stat link {};
  if (lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return std::nullopt;
  if (link.st_uid != geteuid() && link.st_uid != 0) return std::nullopt;
  std::error_code error;
  if (std::filesystem::exists(path, error) || error) return std::nullopt;
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  if (error) return std::nullopt;
  return (std::filesystem::path(Dirname(path)) / target).string();
}

bool IsNetworkFileSystem(uint32_t type) {
  static constexpr uint32_t kTypes[] = {
      0x6969,      // NFS
      0x517B,      // SMB
      0xFE534D42,  // SMB2
      0xFF534D42,  // CIFS
      0x01021997,  // 9P
      0x65735546,  // FUSE
      0x0BD00BD0,  // Lustre
      0x47504653,  // GPFS
      0x00C36400,  // Ceph
      0x5346414F,  // AFS
      0x6B414653,  // kAFS
      0x73757245,  // Coda
      0x19830326,  // BeeGFS
      0xAAD7AAEA,  // PanFS
      0x20030528,  // OrangeFS
      0x7461636F,  // OCFS2
      0x01161970,  // GFS2
      0x786F4256,  // VirtualBox shared folder
  };
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

}  // namespace

absl::StatusOr<std::string> PosixEnv::ReadFile(const std::string& path) {
  struct stat info;
  KERNIX_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegular(path, /*flags=*/0, info));
  // One byte more than the file's size, so that the last read detects the end. Files in /proc report size 0.
  std::string data(static_cast<size_t>(info.st_size) + 1, '\0');
  KERNIX_RETURN_IF_ERROR(ReadAll(fd.get(), data, path));
  return data;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> PosixEnv::OpenFile(const std::string& path) {
  struct stat info;
  KERNIX_ASSIGN_OR_RETURN(UniqueFd fd, OpenRegular(path, O_NOFOLLOW, info));
  return std::make_unique<PosixFile>(std::move(fd), path);
}

absl::Status PosixEnv::WriteFile(const std::string& path, std::string_view data, mode_t mode) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.ok()) return ErrnoStatus(errno, "create", path);
  KERNIX_RETURN_IF_ERROR(WriteAll(fd.get(), data, path));
  if (fchmod(fd.get(), mode) != 0) return ErrnoStatus(errno, "set the mode of", path);
  return Close(std::move(fd), path);
}

absl::Status PosixEnv::WriteFileDurably(const std::string& path, std::string_view data, mode_t mode) {
  KERNIX_ASSIGN_OR_RETURN(const std::string suffix, RandomSuffix());
  const std::string temporary = StrCat(path, ".", suffix, ".tmp");
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!fd.ok()) return ErrnoStatus(errno, "create", temporary);
  absl::Status status = FillAndSync(std::move(fd), data, mode, temporary);
  if (status.ok()) status = Rename(temporary, path);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncDirectory(Dirname(path));
}

absl::StatusOr<FileInfo> PosixEnv::Stat(const std::string& path, bool follow) {
  struct stat info;
  if (fstatat(AT_FDCWD, path.c_str(), &info, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoStatus(errno, "stat", path);
  }
  return InfoOf(info);
}

absl::StatusOr<std::vector<std::string>> PosixEnv::ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  if (error) return ErrnoStatus(error.value(), "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status PosixEnv::CreateDirectories(const std::string& path, mode_t mode) {
  absl::Status status = CreateDirectory(path, mode);
  if (absl::IsAlreadyExists(status)) {
    const std::optional<std::string> target = TargetOfDanglingLink(path);
    return target ? CreateDirectories(*target, mode) : status;
  }
  const std::string parent = Dirname(path);
  if (!absl::IsNotFound(status) || parent == path) return status;
  KERNIX_RETURN_IF_ERROR(CreateDirectories(parent, mode));
  return CreateDirectory(path, mode);
}

absl::StatusOr<std::string> PosixEnv::CreateTempDirectory(const std::string& prefix) {
  std::string path = prefix + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "create a folder", path);
  return path;
}

absl::Status PosixEnv::SetModificationTime(const std::string& path, int64_t unix_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec times[] = {{0, UTIME_OMIT}, {unix_ns / kSecond, unix_ns % kSecond}};
  if (utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) return ErrnoStatus(errno, "set the time of", path);
  return absl::OkStatus();
}

absl::Status PosixEnv::RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) != 0) return ErrnoStatus(errno, "remove", path);
  return absl::OkStatus();
}

namespace {

// So that a folder can be emptied and moved although its owner has shut it. Where that fails, what follows says why.
void LetOwnerIn(int parent, const char* name) {
  const UniqueFd folder(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!folder.ok() || fstat(folder.get(), &info) != 0 || (info.st_mode & S_IRWXU) == S_IRWXU) return;
  (void)chmod(StrCat("/proc/self/fd/", folder.get()).c_str(), (info.st_mode & 07777u) | S_IRWXU);
}

// Removes a folder whose tree may be of any depth, and whose folders may have any modes: a compiler that a text has
// taken over leaves what it likes. A folder with something in it moves up to the top, so that neither descriptors nor
// the stack go with the depth.
class TreeRemover {
 public:
  explicit TreeRemover(const std::string& path) : path_(path) {}

  absl::Status Remove() {
    LetOwnerIn(AT_FDCWD, path_.c_str());
    top_.reset(open(path_.c_str(), kOpen));
    if (!top_.ok()) return errno == ENOENT ? absl::OkStatus() : Failed();
    if (!Empty(".")) return Failed();
    while (!waiting_.empty()) {
      const std::string name = std::move(waiting_.back());
      waiting_.pop_back();
      if (!Empty(name) || !Succeeds(unlinkat(top_.get(), name.c_str(), AT_REMOVEDIR))) return Failed();
    }
    return Succeeds(rmdir(path_.c_str())) ? absl::OkStatus() : Failed();
  }

 private:
  static constexpr int kOpen = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

  absl::Status Failed() const { return ErrnoStatus(errno, "remove", path_); }

  // Somebody else may remove the same tree.
  static bool Succeeds(int result) { return result == 0 || errno == ENOENT; }

  // Of a folder in the top one, "." for itself. False, with errno, if something stays.
  bool Empty(const std::string& folder) {
    const int fd = openat(top_.get(), folder.c_str(), kOpen);
    if (fd < 0) return errno == ENOENT;
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(fd), &closedir);
    if (listing == nullptr) return close(fd), false;
    while (true) {
      errno = 0;
      const dirent* const entry = readdir(listing.get());
      if (entry == nullptr) return errno == 0;
      const std::string_view name = entry->d_name;
      if (name != "." && name != ".." && !RemoveEntry(fd, entry->d_name, folder == ".")) return false;
    }
  }

  bool RemoveEntry(int folder, const char* name, bool is_in_top) {
    if (Succeeds(unlinkat(folder, name, 0))) return true;
    if (errno != EISDIR) return false;
    if (Succeeds(unlinkat(folder, name, AT_REMOVEDIR))) return true;
    if (errno != ENOTEMPTY && errno != EEXIST) return false;
    LetOwnerIn(folder, name);
    if (!is_in_top) return MoveUp(folder, name);
    waiting_.emplace_back(name);
    return true;
  }

  bool MoveUp(int folder, const char* name) {
    while (true) {
      std::string moved = StrCat("moved-", ++moved_);
      if (renameat(folder, name, top_.get(), moved.c_str()) == 0) return waiting_.push_back(std::move(moved)), true;
      if (errno == ENOENT) return true;
      if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return false;  // else: the name is taken
    }
  }

  const std::string path_;
  UniqueFd top_;
  std::vector<std::string> waiting_;  // folders in the top one
  uint64_t moved_ = 0;
};

}  // namespace

absl::Status PosixEnv::RemoveTree(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return absl::OkStatus();
  return errno == EISDIR ? TreeRemover(path).Remove() : ErrnoStatus(errno, "remove", path);
}

absl::Status PosixEnv::Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return ErrnoStatus(errno, "rename", StrCat(from, " to ", to));
  return absl::OkStatus();
}

absl::Status PosixEnv::SyncDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok()) return ErrnoStatus(errno, "open", path);
  return SyncFile(fd.get(), path);
}

absl::Status PosixEnv::CreateSymlink(const std::string& target, const std::string& path) {
  if (symlink(target.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, "create the link", path);
  return absl::OkStatus();
}

absl::StatusOr<std::string> PosixEnv::ReadLink(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  if (error) return ErrnoStatus(error.value(), "read the link", path);
  return target.string();
}

absl::StatusOr<std::string> PosixEnv::RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &free);
  if (!real) return ErrnoStatus(errno, "resolve", path);
  return std::string(real.get());
}

// The kernel does not store an access list that says no more than the mode.
absl::StatusOr<bool> PosixEnv::HasAccessList(const std::string& path) {
  if (lgetxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0) return true;
  if (errno == ENODATA || errno == ENOTSUP) return false;
  return ErrnoStatus(errno, "read the access list of", path);
}

absl::StatusOr<uint64_t> PosixEnv::FreeBytes(const std::string& path) {
  struct statvfs info;
  if (statvfs(path.c_str(), &info) != 0) return ErrnoStatus(errno, "find the free space of", path);
  return uint64_t{info.f_bavail} * info.f_frsize;
}

absl::StatusOr<bool> PosixEnv::OnNetworkFileSystem(const std::string& path) {
  struct statfs info;
  if (statfs(path.c_str(), &info) == 0) return IsNetworkFileSystem(static_cast<uint32_t>(info.f_type));
  const std::string parent = Dirname(path);
  const bool is_hidden = errno == ENOENT || errno == EACCES;
  if (!is_hidden || parent == path) return ErrnoStatus(errno, "find the file system of", path);
  return OnNetworkFileSystem(parent);
}

namespace {

class PosixScratchFile : public ScratchFile {
 public:
  PosixScratchFile(std::string folder, size_t capacity) : folder_(std::move(folder)), capacity_(capacity) {}
  ~PosixScratchFile() override {
    if (mapping_ != MAP_FAILED) munmap(mapping_, capacity_);
  }
  PosixScratchFile(const PosixScratchFile&) = delete;
  PosixScratchFile& operator=(const PosixScratchFile&) = delete;

  absl::Status Open() {
    std::string name = StrCat(folder_, "/scratch-XXXXXX");
    fd_.reset(mkostemp(name.data(), O_CLOEXEC));
    if (!fd_.ok()) return Failed("create a file in");
    if (unlink(name.c_str()) != 0) return Failed("remove a file's name from");
    mapping_ = mmap(nullptr, capacity_, PROT_READ, MAP_SHARED, fd_.get(), 0);
    return mapping_ != MAP_FAILED ? absl::OkStatus() : Failed("map a file of");
  }

  absl::StatusOr<std::string_view> Write(uint64_t offset, std::string_view bytes) override {
    if (offset > capacity_ || bytes.size() > capacity_ - offset) {
      return absl::InternalError(StrCat("no room in a file of ", folder_));
    }
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t put =
          pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return Failed("write to a file in");
      done += static_cast<size_t>(put);
    }
    return std::string_view(static_cast<const char*>(mapping_) + offset, bytes.size());
  }

  void Free(uint64_t offset, uint64_t size) override {
    (void)fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(size));
  }

 private:
  absl::Status Failed(const char* action) const { return ErrnoStatus(errno, action, folder_); }

  const std::string folder_;
  const size_t capacity_;
  UniqueFd fd_;
  void* mapping_ = MAP_FAILED;  // of the whole file that is yet to be written: pages beyond its end must not be touched
};

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchFile>> PosixEnv::MakeScratchFile(const std::string& folder, uint64_t capacity) {
  auto file = std::make_unique<PosixScratchFile>(folder, capacity);
  const absl::Status opened = file->Open();
  if (!opened.ok()) return opened;
  return file;
}

namespace {

class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  // Closing alone is not enough if another thread has forked: the child shares the lock until it calls exec(). But a
  // child does not release its parent's.
  ~PosixFileLock() override {
    if (owner_ == getpid()) flock(fd_.get(), LOCK_UN);
  }

 private:
  UniqueFd fd_;
  const pid_t owner_ = getpid();
};

// Returns false if `path` was removed or replaced since `fd` was opened. The lock then guards nothing.
bool StillNamed(int fd, const std::string& path) {
  struct stat opened;
  struct stat named;
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

// A umask may have shut its owner out.
void LetOwnerOpen(int fd) {
  struct stat info;
  if (fstat(fd, &info) == 0 && (info.st_mode & 0600) != 0600) (void)fchmod(fd, 0600);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLock>> PosixEnv::TryLockFile(const std::string& path) {
  while (true) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!fd.ok()) return ErrnoStatus(errno, "open the lock", path);
    LetOwnerOpen(fd.get());
    if (TEMP_FAILURE_RETRY(flock(fd.get(), LOCK_EX | LOCK_NB)) != 0) {
      if (errno == EWOULDBLOCK) return absl::UnavailableError(StrCat("another process holds the lock ", path));
      return ErrnoStatus(errno, "lock", path);
    }
    if (StillNamed(fd.get(), path)) return std::make_unique<PosixFileLock>(std::move(fd));
  }
}

absl::StatusOr<std::unique_ptr<FileLock>> PosixEnv::LockFile(const std::string& path, MonotonicTime deadline) {
  // flock() cannot wait with a timeout, so poll: often at first, because most locks here are held for milliseconds.
  constexpr std::chrono::milliseconds kLongestPause{20};
  std::chrono::milliseconds pause{1};
  while (true) {
    absl::StatusOr<std::unique_ptr<FileLock>> lock = TryLockFile(path);
    if (!absl::IsUnavailable(lock.status())) return lock;
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError(StrCat("another process still holds the lock ", path));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace kernix::posix
