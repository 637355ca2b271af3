// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the system calls' errors: a status with a readable message, or an end of this process.
#pragma once

#include <sys/epoll.h>

#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// The status code that Env documents for `error_number`.
absl::StatusCode CodeForErrno(int error_number);

// "cannot <action> <subject>: <the operating system's text>".
absl::Status ErrnoStatus(int error_number, std::string_view action, std::string_view subject);

// epoll_wait(2). Returns how many events there are; 0 also if a signal has come. Every other error would last, and the
// caller would ask again and again: it ends the process, with a line in the log.
int AwaitEvents(int epoll, std::span<epoll_event> events, int timeout_ms);

}  // namespace kernix
