// SPDX-License-Identifier: Apache-2.0
//
// Converts errno to a status with a readable message.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// The status code that Env documents for `error_number`.
absl::StatusCode CodeForErrno(int error_number);

// "cannot <action> <subject>: <the operating system's text>".
absl::Status ErrnoStatus(int error_number, std::string_view action, std::string_view subject);

}  // namespace kernix
