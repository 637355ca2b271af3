// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "common/base/strings.h"
#include "common/os/posix_env.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"

namespace kernix::posix {
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

}  // namespace

absl::StatusOr<std::unique_ptr<FileLock>> PosixEnv::TryLockFile(const std::string& path) {
  while (true) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!fd.ok()) return ErrnoStatus(errno, "open the lock", path);
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
