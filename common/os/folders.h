// SPDX-License-Identifier: Apache-2.0
//
// The folders of kernix, for both daemon and client: stores, and the run folders of daemons.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "common/os/env.h"

namespace kernix {

// The stores of a kernixd as users name them: "/scratch/kernix:/image/kernix".
struct StoreList {
  std::string written;
  std::vector<std::string> read;  // where else to look, in this order
  std::string warning;            // why it is not the usual store, and what to do; otherwise empty

  // As users name them.
  std::string Text() const;
};

// The folder where a private daemon listens.
struct RunFolder {
  std::string directory;   // private, 0700
  std::string socket;      // <directory>/kernixd.sock
  std::string lock;        // <directory>/kernixd.lock, held by the daemon while it runs
  std::string start_lock;  // <directory>/start.lock, held by the client that starts a daemon
  std::string log;         // <directory>/kernixd.log, with the output of a daemon that has no terminal
  std::string warning;     // why it is not the usual folder, and what to do; otherwise empty
};

// Names in a run folder. A run folder in the runtime directory is named by kRunFolderNameSize hexadecimal digits.
inline constexpr char kLockName[] = "kernixd.lock";
inline constexpr char kStartLockName[] = "start.lock";
inline constexpr size_t kRunFolderNameSize = 16;

// A private folder in a store, which only the store's owner can enter.
inline constexpr char kPrivateFolder[] = "private";
// A folder in kPrivateFolder: the run folder of a daemon that cannot use the usual one.
inline constexpr char kRunFolder[] = "run";

// The user's folder for what need not outlive the machine's next start. It is created and must be private.
// $XDG_RUNTIME_DIR/kernix if that variable names a folder that belongs to `uid` and that no other user can write to;
// otherwise /tmp/kernix-<uid>.
absl::StatusOr<std::string> RuntimeDirectory(Env& env, const GetEnv& get_env, uid_t uid);

// The run folder of the daemon that serves `store_directory` for this user, below the user's runtime directory. Its
// name is a digest of the store's canonical path. A process's default store depends on its environment, so no store has
// a special name. If the socket's path would be too long, the folder is below /tmp/kernix-<uid>. If that folder cannot
// be used, for example because another user has created it, the run folder is in the store, unless its path would be
// too long. Creates the folder.
absl::StatusOr<RunFolder> RunFolderForStore(Env& env, const GetEnv& get_env, uid_t uid,
                                            const std::string& store_directory);

// The same, for callers that only look for a daemon: does not create the folder.
absl::StatusOr<RunFolder> FindRunFolderForStore(Env& env, const GetEnv& get_env, uid_t uid,
                                                const std::string& store_directory);

// kInvalidArgument: a path is not absolute, or not UTF-8. The stores of `named`, if it is not empty (`origin`: what
// names them, for errors); otherwise those of $KERNIX_CACHE_DIR; otherwise DefaultStoreDirectory() alone.
absl::StatusOr<StoreList> UserStores(Env& env, const GetEnv& get_env, uid_t uid, std::string_view origin,
                                     std::string_view named);

// The user's cache folder: $XDG_CACHE_HOME, otherwise ~/.cache. nullopt if the user has no home.
std::optional<std::string> CacheHome(const GetEnv& get_env, uid_t uid);

// The user's store if no other is configured: $KERNIX_CACHE_DIR, otherwise $XDG_CACHE_HOME/kernix, otherwise
// ~/.cache/kernix. If there is no home, or that folder is on a network file system or its path is not UTF-8 (and it was
// not named by KERNIX_CACHE_DIR), the store is /var/tmp/kernix-<uid>, which is created and must be private. If
// that folder cannot be used, for example because another user has created it, the store is `store` in the user's
// runtime directory. This function creates no other folder.
absl::StatusOr<std::string> DefaultStoreDirectory(Env& env, const GetEnv& get_env, uid_t uid);

// The socket of a machine's service.
inline constexpr char kServiceSocket[] = "/run/kernix/kernixd.sock";

// The kernixd that holds a store, from the store's lock. The same user's processes may look for it in different run
// folders, for example with and without XDG_RUNTIME_DIR, but there can be only one.

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
