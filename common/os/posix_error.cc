// SPDX-License-Identifier: Apache-2.0
#include "common/os/posix_error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/base/log.h"
#include "common/base/strings.h"

namespace kernix {

absl::StatusCode CodeForErrno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case EFBIG:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
      return absl::StatusCode::kResourceExhausted;
    case E2BIG:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status ErrnoStatus(int error_number, std::string_view action, std::string_view subject) {
  // Without a look for a translation, which the first time takes longer than all of a load's calls that fail.
  const char* const text = strerrordesc_np(error_number);
  return absl::Status(CodeForErrno(error_number), StrCat("cannot ", action, " ", subject, ": ",
                                                         text == nullptr ? StrCat("error ", error_number) : text));
}

int AwaitEvents(int epoll, std::span<epoll_event> events, int timeout_ms) {
  const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), timeout_ms);
  if (count >= 0) return count;
  if (errno == EINTR) return 0;
  Log(LogLevel::kError, "epoll_failed", {{"descriptor", epoll}, {"error", std::strerror(errno)}});
  std::abort();
}

}  // namespace kernix
