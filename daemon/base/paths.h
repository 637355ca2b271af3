// SPDX-License-Identifier: Apache-2.0
//
// Where kernix keeps things, the same for daemon and client, and small helpers for path text.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "daemon/base/env.h"

namespace kernix {

// Reads an environment variable. Injected, so that tests need not change the process.
using GetEnv = std::function<std::optional<std::string>(const std::string&)>;

// The real one. An empty variable counts as absent.
std::optional<std::string> ProcessGetEnv(const std::string& name);

std::string JoinPath(std::string_view a, std::string_view b);
std::string Basename(std::string_view path);
std::string Dirname(std::string_view path);

// Lexical: collapses "//", "." and "..". Keeps a leading "/".
std::string NormalizePath(std::string_view path);

// The longest socket path that bind(2) takes, without its NUL: 107.
inline constexpr size_t kMaxSocketPath = 107;

// `path` with every link resolved, also where its last parts do not exist yet: the same text before and after they are
// made.
std::string CanonicalPath(Env& env, const std::string& path);

// Makes `path` with mode 0700 when absent, with its parents. kPermissionDenied, naming the owner, when it is somebody
// else's, a link, no folder, or open to others.
absl::Status EnsurePrivateDirectory(Env& env, const std::string& path, uid_t uid);

// For a folder that may be a link, and that others may read: kPermissionDenied, naming the owner and what to do, when
// it belongs to neither `uid` nor root, or when others may write to it.
absl::Status CheckGuardedDirectory(Env& env, const std::string& path, uid_t uid);

// EnsurePrivateDirectory(), and nobody else can put another in its place: see GuardedRealPath().
absl::Status EnsureOwnDirectory(Env& env, const std::string& path, uid_t uid);

// "mallory (uid 1002)", or "uid 1002" where the user database has no such user.
std::string DescribeUser(uid_t uid);

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
