// SPDX-License-Identifier: Apache-2.0
//
// Env::Posix()'s FileWatch, by inotify.
#pragma once

#include <cstddef>
#include <memory>

#include "common/os/env.h"

namespace kernix::posix {

// Of the user's, whose other programs need some, too.
inline constexpr size_t kMostWatches = 4096;

// The kernel notes a change before the system call that makes it returns, and Changed() asks it with one system call.
// Nobody is woken meanwhile. It watches the file, and each folder and link on its way, not the names in folders: so it
// hears nothing of other files in them.
//
// It does not take on what is missing or no regular file, what lies on a file system that others than this kernel may
// change, and what this user may not read; nor more than kMostWatches files and folders. Any mount counts as a change.
//
// Two things escape it. What a program writes to mapped memory or by asynchronous I/O shows when it closes the file. If
// a folder may not be searched any more, that does not show; the file in it is the same.
//
// Null if the kernel grants none: users have a limited number.
std::unique_ptr<FileWatch> WatchFiles();

}  // namespace kernix::posix
