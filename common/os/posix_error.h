// SPDX-License-Identifier: Apache-2.0
//
// errno, as a status that a person can read.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// The status code that Env promises for `error_number`.
absl::StatusCode CodeForErrno(int error_number);

// "cannot <action> <subject>: <the operating system's words>".
absl::Status ErrnoStatus(int error_number, std::string_view action, std::string_view subject);

}  // namespace kernix
