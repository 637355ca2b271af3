// SPDX-License-Identifier: Apache-2.0
//
// Waiting for the events of many descriptors.
#pragma once

#include <sys/epoll.h>

#include <span>

namespace kernix::posix {

// epoll_wait(2). Returns how many events there are; 0 also if a signal has come. Every other error would last, and the
// caller would ask again and again: it ends the process, with a line in the log.
int AwaitEvents(int epoll, std::span<epoll_event> events, int timeout_ms);

}  // namespace kernix::posix
