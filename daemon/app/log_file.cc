// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "common/base/strings.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

absl::Status LogFile::Open() {
  const MutexLock lock(mutex_);
  return OpenLocked();
}

absl::Status LogFile::Step() {
  const MutexLock lock(mutex_);
  return StepLocked();
}

void LogFile::Wrote(size_t bytes) {
  const MutexLock lock(mutex_);
  written_ += bytes;
  if (written_ >= limit_ / 4) StepLocked().IgnoreError();
}

absl::Status LogFile::OpenLocked() {
  const UniqueFd file(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file.ok()) return ErrnoStatus(errno, "open the log file", path_);
  if (dup2(file.get(), descriptor_) < 0) return ErrnoStatus(errno, "write to the log file", path_);
  return absl::OkStatus();
}

absl::Status LogFile::StepLocked() {
  written_ = 0;
  struct stat info {};
  if (stat(path_.c_str(), &info) != 0) return OpenLocked();  // somebody has removed it
  if (static_cast<uint64_t>(info.st_size) <= limit_) return absl::OkStatus();
  if (rename(path_.c_str(), StrCat(path_, ".1").c_str()) != 0) return ErrnoStatus(errno, "rename", path_);
  return OpenLocked();
}

}  // namespace kernix::server
