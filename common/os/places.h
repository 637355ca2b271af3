// SPDX-License-Identifier: Apache-2.0
//
// Where kernix keeps things, the same for daemon and client.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "common/os/env.h"

namespace kernix {

// Where this user's daemons live: $XDG_RUNTIME_DIR/kernix when that variable names a folder that belongs to `uid` and
// that no other can write, else /tmp/kernix-<uid>. A private folder, see EnsurePrivateDirectory().
absl::StatusOr<std::string> UserRuntimeDirectory(Env& env, const GetEnv& get_env, uid_t uid);

struct DaemonPlace {
  std::string directory;   // private, 0700
  std::string socket;      // <directory>/kernixd.sock
  std::string lock;        // <directory>/kernixd.lock, held by the daemon as long as it lives
  std::string start_lock;  // <directory>/start.lock, held by the client that starts one
  std::string log;         // <directory>/kernixd.log: what a daemon says that nobody watches
  std::string warning;     // why it is not where it should be, and what to do; empty: it is
};

// What a store keeps for its owner alone: a folder below it, private.
inline constexpr char kPrivateFolder[] = "private";
// In that folder: the place of a daemon that cannot have its usual one.
inline constexpr char kPlaceFolder[] = "run";

// The place of the daemon that serves `store_directory` for this user: a folder below the runtime directory that is
// named by a digest of the store's canonical path. What a process believes to be its default store depends on its
// environment, so no store is special here. Where the socket's path would be too long, the folder lies below
// /tmp/kernix-<uid>. When that cannot be had, as when somebody else has made it, the place lies in the store, unless
// its path is too long.
absl::StatusOr<DaemonPlace> PlaceForStore(Env& env, const GetEnv& get_env, uid_t uid,
                                          const std::string& store_directory);

// The user's store when nothing else is said: $KERNIX_CACHE_DIR, else $XDG_CACHE_HOME/kernix, else ~/.cache/kernix;
// when that lies on a network file system (and was not asked for by name), or there is no home, /var/tmp/kernix-<uid>,
// which is made and must be private. Only that one is made here.
absl::StatusOr<std::string> DefaultStoreDirectory(Env& env, const GetEnv& get_env, uid_t uid);

// The socket of a machine's service.
inline constexpr char kServiceSocket[] = "/run/kernix/kernixd.sock";

}  // namespace kernix
