// SPDX-License-Identifier: Apache-2.0
//
// The one interface to the operating system: files, clock and processes. Code above common/os never calls open(),
// fork() or, except to wait, a clock directly, so tests can run the same code on an in-memory file system (MemEnv) or
// with injected faults (FaultEnv).
//
// All methods are thread-safe. Errors: kNotFound, kAlreadyExists, kPermissionDenied, kResourceExhausted (no space, no
// descriptors, quota), and kInternal for the rest. Every message names the path and includes the operating system's
// text.
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
#include "common/os/spawn_message.h"

namespace kernix {

using MonotonicTime = std::chrono::steady_clock::time_point;
using Duration = std::chrono::milliseconds;

enum class FileType { kRegular, kDirectory, kSymlink, kOther };

// The result of stat(2). Together, the `Fingerprint` fields show whether a file can have changed since it was last
// read.
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

// A file that is open for reading. It remains the same file when its name is removed or given to another file.
// Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual absl::StatusOr<FileInfo> Stat() = 0;
  // Reads the bytes from `offset` on into `buffer` and returns their number. The number is less than the buffer's size
  // only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> buffer) = 0;
};

// Bytes set aside on a disk, in a file without a name, which goes with the object. Thread-safe.
class ScratchFile {
 public:
  virtual ~ScratchFile() = default;
  // Writes `bytes` into a part of the file that holds nothing. The result keeps them until Free(), in memory that the
  // kernel can reclaim. kResourceExhausted if the disk is full.
  virtual absl::StatusOr<std::string_view> Write(uint64_t offset, std::string_view bytes) = 0;
  // Gives the disk a part of the file back, where the file system can.
  virtual void Free(uint64_t offset, uint64_t size) = 0;
};

// A program to run until it ends.
struct ProcessSpec {
  std::vector<std::string> argv;                   // argv[0] is the path of the program
  std::map<std::string, std::string> environment;  // the complete environment; nothing is inherited
  std::string working_directory;                   // empty: "/"
  // What the program is kept from, and the folders that it may read, and write, nevertheless (see Command).
  spawn::Enclosure enclosure = {};
  std::vector<std::string> folders = {};
  std::string writable = {};
  std::chrono::milliseconds timeout{0};  // 0: no limit. On expiry, all of its processes are killed.
  uint64_t max_file_bytes = 0;           // 0: no limit. SIGXFSZ kills a program that makes a larger file.
  // Limits of each process: memory, and processor time (SIGXCPU, and 5 s later SIGKILL). 0: no limit. Where each job
  // has a cgroup, the limit of memory is also that of all of its processes together.
  uint64_t max_address_space_bytes = 0;
  std::chrono::seconds max_cpu_time{0};
  // How many bytes the files in the folder `writable` may have more than at the start, counted at intervals. 0: no
  // limit. Above the limit, all processes are killed.
  uint64_t max_folder_bytes = 0;
  // How many processes the program and its descendants may be at a time. 0: no limit. Above the limit, all of them are
  // killed. They are counted at intervals, so many more may exist for a moment.
  int max_processes = 0;
  int niceness = 0;  // how much less processor time it asks for than this process, as for nice(1): up to 19
  size_t max_output_bytes = 4 << 20;  // how much of stdout and stderr together is kept; the middle is dropped
};

struct ProcessResult {
  // What its processes had too much or too many of together, and were killed for.
  enum class Excess { kNone, kProcesses, kBytesOfFiles, kMemory };
  int exit_code = 0;  // 128 + signal when a signal ended it
  int signal = 0;     // 0 unless a signal ended it
  bool timed_out = false;
  Excess excess = Excess::kNone;
  std::string output;  // stdout and stderr, in the order in which they were written
  std::chrono::milliseconds wall{0};
  uint64_t max_rss_bytes = 0;              // of the largest process among it and its children
  std::chrono::microseconds processor{0};  // that it and its children have used, but for those that it did not wait for
};

// Receives pieces of output as they arrive, in the thread that runs the process.
using OutputCallback = std::function<void(std::string_view)>;

// An advisory lock, released on destruction. The kernel also releases it when the process dies.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// Tells whether files may have changed, for less than a check of each. A change does not escape it because it came just
// before the question. Not thread-safe.
class FileWatch {
 public:
  virtual ~FileWatch() = default;
  // Watches the file that `path` leads to, and the links and folders on the way. An earlier change does not show: check
  // the file afterwards. False if some change would escape; then check it each time.
  virtual bool Add(const std::string& path) = 0;
  // Whether something that is watched may have changed. If so, it watches nothing any more.
  virtual bool Changed() = 0;
};

class Env {
 public:
  virtual ~Env() = default;

  // The operating system. Never destroyed.
  static Env& Posix();

  // --- Files -------------------------------------------------------------------------------------------------------
  // The content of a regular file. Returns kInternal for anything else; it never waits for a pipe.
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;

  // Opens a regular file. Returns kInternal for anything else, including a link.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(const std::string& path) = 0;

  // On the disk of that folder, for `capacity` bytes at most, which must not be 0. It takes as much room as its
  // content.
  virtual absl::StatusOr<std::unique_ptr<ScratchFile>> MakeScratchFile(const std::string& folder,
                                                                       uint64_t capacity) = 0;

  // Creates or replaces `path` with exactly `mode`. Guarantees nothing after a crash.
  virtual absl::Status WriteFile(const std::string& path, std::string_view data, mode_t mode) = 0;

  // Writes a temporary file beside `path`, syncs it, renames it to `path` and syncs the folder. After a crash, `path`
  // holds either the complete old or the complete new content. The mode is exactly `mode`, whatever the umask. On an
  // error nothing is left behind; a crash can leave a file named `path` + "." + 16 hexadecimal digits + ".tmp".
  virtual absl::Status WriteFileDurably(const std::string& path, std::string_view data, mode_t mode) = 0;

  // With `follow`, describes the file that a link points to.
  virtual absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow = true) = 0;

  // The names in a folder, without "." and "..", sorted.
  virtual absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) = 0;

  // Creates `path` with all missing parents. Returns OK if it already exists. `mode` applies to the folders that it
  // creates.
  virtual absl::Status CreateDirectories(const std::string& path, mode_t mode = 0755) = 0;

  // Creates an empty folder with mode 0700, named `prefix` + random characters. `prefix` is a complete path.
  virtual absl::StatusOr<std::string> CreateTempDirectory(const std::string& prefix) = 0;

  // Sets the `mtime_ns` of an existing file.
  virtual absl::Status SetModificationTime(const std::string& path, int64_t unix_ns) = 0;

  virtual absl::Status RemoveFile(const std::string& path) = 0;
  // Removes a file, or a folder with everything in it. Removes links without following them. Returns OK if `path` does
  // not exist.
  virtual absl::Status RemoveTree(const std::string& path) = 0;
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;

  // Guarantees that after a crash the folder contains the names that it contains now.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // Makes `path` a symbolic link to `target`, which need not exist.
  virtual absl::Status CreateSymlink(const std::string& target, const std::string& path) = 0;

  // The target of the link at `path`, exactly as it was created.
  virtual absl::StatusOr<std::string> ReadLink(const std::string& path) = 0;

  // `path` with every link resolved.
  virtual absl::StatusOr<std::string> RealPath(const std::string& path) = 0;

  // Takes an exclusive lock without waiting. Creates the file. Returns kUnavailable if another process or object holds
  // it.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> TryLockFile(const std::string& path) = 0;
  // Takes an exclusive lock; waits until `deadline`, then returns kDeadlineExceeded.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> LockFile(const std::string& path, MonotonicTime deadline) = 0;

  // How many bytes this user can still write on the file system of `path`.
  virtual absl::StatusOr<uint64_t> FreeBytes(const std::string& path) = 0;

  // Whether `path` is on a network file system (NFS, CIFS, 9P, FUSE, Lustre, GPFS, Ceph...), where SQLite's locks and
  // mapped files are unreliable. For a path that does not exist yet, uses its nearest existing parent.
  virtual absl::StatusOr<bool> OnNetworkFileSystem(const std::string& path) = 0;

  // Null if changes cannot be watched.
  virtual std::unique_ptr<FileWatch> WatchFiles() { return nullptr; }

  // --- Rights ------------------------------------------------------------------------------------------------------
  // Whether `path` (not a link) has a POSIX access list in addition to its mode. False on systems without access lists.
  virtual absl::StatusOr<bool> HasAccessList(const std::string& path) = 0;

  // Whether `group` was created for `user` alone: it is the user's primary group, has the same name, and has no other
  // member in the user database.
  virtual bool IsPrivateGroup(gid_t group, uid_t user) = 0;

  // --- Clock -------------------------------------------------------------------------------------------------------
  // Not for a wait that only the operating system can end: in poll(), for a condition, for another process. It ends by
  // the real clock, and so its deadline is of that clock.
  virtual MonotonicTime Now() = 0;
  // Milliseconds since 1970 UTC.
  virtual int64_t UnixMillis() = 0;

  // --- Processes ---------------------------------------------------------------------------------------------------
  // Runs a program until it ends, in its own process group, with stdin from /dev/null and without inherited
  // descriptors. Blocks. Returns kNotFound or kPermissionDenied if the program cannot be started, kUnavailable if its
  // enclosure cannot be made, and kCancelled if `cancellation` fired. A non-zero exit is not an error. `on_output` and
  // `cancellation` may be null. When the program ends, is cancelled, or this process dies, all processes that it has
  // started are killed.
  virtual absl::StatusOr<ProcessResult> RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                                   Cancellation* cancellation) = 0;
};

}  // namespace kernix
