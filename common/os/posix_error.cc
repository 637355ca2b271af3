// SPDX-License-Identifier: Apache-2.0
#include "common/os/posix_error.h"

#include <cerrno>
#include <cstring>
#include <string>

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

}  // namespace kernix
