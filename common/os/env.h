// SPDX-License-Identifier: Apache-2.0
//
// The one seam to the operating system: files, clock and processes. Nothing above common/os calls open(), fork() or a
// clock by itself, so a test can run the same code on an in-memory file system (MemEnv) or with faults (FaultEnv).
//
// All methods are thread-safe. Errors: kNotFound, kAlreadyExists, kPermissionDenied, kResourceExhausted (no space, no
// descriptors, quota), kInternal for the rest; every message names the path and the operating system's words.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/cancellation.h"

namespace kernix {

using MonotonicTime = std::chrono::steady_clock::time_point;
using Duration = std::chrono::milliseconds;

enum class FileType { kRegular, kDirectory, kSymlink, kOther };

// What stat(2) tells. `Fingerprint` fields together say whether a file can have changed since it was last read.
struct FileInfo {
  FileType type = FileType::kOther;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  uint64_t inode = 0;
  uint64_t device = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;  // permission bits only
};

// Whether what stat(2) says leaves no room for another content.
inline bool SameContent(const FileInfo& a, const FileInfo& b) {
  return a.size == b.size && a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns && a.inode == b.inode &&
         a.device == b.device;
}

// A file that is open for reading: it stays the same one when its name goes, or becomes another file's. Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual absl::StatusOr<FileInfo> Stat() = 0;
  // The bytes from `offset` on, into `buffer`. How many: fewer than there is room for only at the file's end.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> buffer) = 0;
};

// A program to run to its end.
struct ProcessSpec {
  std::vector<std::string> argv;                   // argv[0] is the path of the program
  std::map<std::string, std::string> environment;  // the whole of it; nothing is inherited
  std::string working_directory;
  std::chrono::milliseconds timeout{0};  // 0: none. On expiry the whole process group is killed.
  uint64_t max_file_bytes = 0;           // 0: none. A program that makes a larger file is killed by SIGXFSZ.
  // Of each process: none gets more memory than that, or more processor time (SIGXCPU, and 5 s later SIGKILL). 0: none.
  uint64_t max_address_space_bytes = 0;
  std::chrono::seconds max_cpu_time{0};
  // Running at once, of the program and what it has started. 0: any number. Above it all of them are killed; they are
  // counted every now and then, so many more may have been there for a moment.
  int max_processes = 0;
  size_t max_output_bytes = 4 << 20;  // what is kept of stdout and stderr together; the middle is dropped
};

struct ProcessResult {
  int exit_code = 0;  // 128 + signal when a signal ended it
  int signal = 0;     // 0 unless a signal ended it
  bool timed_out = false;
  bool too_many_processes = false;  // it was killed for that
  std::string output;               // stdout and stderr, in the order written
  std::chrono::milliseconds wall{0};
  uint64_t max_rss_bytes = 0;  // of the largest process among it and its children; never below this process's own peak
};

// Called with pieces of output as they come, from the thread that runs the process.
using OutputCallback = std::function<void(std::string_view)>;

// Releases an advisory lock when it goes. The kernel also releases it when the process dies.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class Env {
 public:
  virtual ~Env() = default;

  // The operating system. Lives for ever.
  static Env& Posix();

  // --- Files -------------------------------------------------------------------------------------------------------
  // The content of a regular file; kInternal when it is something else (a pipe is never waited for).
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;

  // Opens a regular file; kInternal when it is something else, a link included.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(const std::string& path) = 0;

  // Creates or replaces `path`, with exactly `mode`. No promise for a crash.
  virtual absl::Status WriteFile(const std::string& path, std::string_view data, mode_t mode) = 0;

  // Writes beside `path`, syncs, renames over it and syncs the folder: after a crash `path` holds the old or the new
  // content, whole. Exactly `mode`, whatever the umask is. On error nothing is left behind; a crash can leave a file
  // named `path` + "." + 16 hexadecimal digits + ".tmp".
  virtual absl::Status WriteFileDurably(const std::string& path, std::string_view data, mode_t mode) = 0;

  // `follow`: of what a link points to.
  virtual absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow = true) = 0;

  // Names, without "." and "..", sorted.
  virtual absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) = 0;

  // With all missing parents. OK when it is there already. `mode` applies to what is made.
  virtual absl::Status CreateDirectories(const std::string& path, mode_t mode = 0755) = 0;

  // A new empty folder, mode 0700, named `prefix` + random characters. `prefix` is a whole path.
  virtual absl::StatusOr<std::string> CreateTempDirectory(const std::string& prefix) = 0;

  // Sets what Stat() tells as `mtime_ns`, to the second, of an existing file.
  virtual absl::Status SetModificationTime(const std::string& path, int64_t unix_seconds) = 0;

  virtual absl::Status RemoveFile(const std::string& path) = 0;
  // A file or a folder with all in it. Links are removed, not followed. OK when there is none.
  virtual absl::Status RemoveTree(const std::string& path) = 0;
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;

  // After a crash the folder holds the names that it holds now.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // Makes `path` a symbolic link to `target`, which need not be there.
  virtual absl::Status CreateSymlink(const std::string& target, const std::string& path) = 0;

  // Where the link at `path` points, as it was made.
  virtual absl::StatusOr<std::string> ReadLink(const std::string& path) = 0;

  // `path` with every link resolved.
  virtual absl::StatusOr<std::string> RealPath(const std::string& path) = 0;

  // Exclusive, does not wait. kUnavailable when somebody else holds it. Creates the file.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> TryLockFile(const std::string& path) = 0;
  // Exclusive, waits until `deadline`, then kDeadlineExceeded.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> LockFile(const std::string& path, MonotonicTime deadline) = 0;

  // Bytes that this user can still write on the file system of `path`.
  virtual absl::StatusOr<uint64_t> FreeBytes(const std::string& path) = 0;

  // True when `path` lies on a network file system (NFS, CIFS, 9P, FUSE, Lustre, GPFS, Ceph...), where SQLite's locks
  // and mapped files cannot be trusted. A path that does not exist yet lies where its nearest parent does.
  virtual absl::StatusOr<bool> OnNetworkFileSystem(const std::string& path) = 0;

  // --- Rights ------------------------------------------------------------------------------------------------------
  // Whether `path` (no link) has a POSIX access list beside its mode. False where there are no such lists.
  virtual absl::StatusOr<bool> HasAccessList(const std::string& path) = 0;

  // Whether `group` is the one that was made for `user` alone: it is that user's first, has the same name, and the
  // database lists no other member.
  virtual bool IsPrivateGroup(gid_t group, uid_t user) = 0;

  // --- Clock -------------------------------------------------------------------------------------------------------
  virtual MonotonicTime Now() = 0;
  // Milliseconds since 1970 UTC.
  virtual int64_t UnixMillis() = 0;

  // --- Processes ---------------------------------------------------------------------------------------------------
  // Runs a program to its end in a process group of its own, stdin from /dev/null, no descriptor inherited. Blocks.
  // kNotFound or kPermissionDenied when it cannot be started, kCancelled when `cancellation` fired (the group is then
  // killed and reaped). A non-zero exit is no error. Both `on_output` and `cancellation` may be null. Ends when the
  // program ends: what it left running in its group is killed then. The program is also killed when this process dies
  // (programs that it has started itself are not).
  virtual absl::StatusOr<ProcessResult> RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                                   Cancellation* cancellation) = 0;
};

}  // namespace kernix
