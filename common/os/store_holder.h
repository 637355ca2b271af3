// SPDX-License-Identifier: Apache-2.0
//
// What a store's lock says about the kernixd that holds it. The same user's processes may look for it in different
// places, for example with and without XDG_RUNTIME_DIR, but there can be only one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/os/env.h"

namespace kernix {

// The name of the file in a store's private folder.
inline constexpr char kHolderFile[] = "owner";

// Notes this process as the holder, in the store's private folder, which exists. `socket` is where it listens; empty:
// it serves one client alone.
absl::Status NoteStoreHolder(Env& env, const std::string& store_directory, const std::string& socket);

// In words: "process 12, at /run/user/1000/kernix/ab/kernixd.sock". Empty if nothing is noted.
std::string DescribeStoreHolder(Env& env, const std::string& store_directory);

// Where the latest holder listens, or has listened; empty if that is not known. Whoever connects has to check whose
// socket it is.
std::string SocketOfStoreHolder(Env& env, const std::string& store_directory);

// The process that holds the store's lock, as far as this one sees it: not one of another user (unless this is root's),
// nor of another process namespace.
std::optional<pid_t> ProcessOfStoreHolder(Env& env, const std::string& store_directory);

}  // namespace kernix
