// SPDX-License-Identifier: Apache-2.0
#include "common/os/folders.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/digest.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/file_identity.h"
#include "common/os/private_directory.h"

namespace kernix {

std::string StoreList::Text() const { return read.empty() ? written : StrCat(written, ":", absl::StrJoin(read, ":")); }

namespace {

constexpr char kSocketName[] = "kernixd.sock";

// kInvalidArgument unless all paths are absolute, and UTF-8 as all texts of messages. `origin`: where the text stands,
// for the message.
absl::StatusOr<StoreList> ParseStoreList(std::string_view origin, std::string_view text) {
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError(
        StrCat(origin, " must name a folder whose path is UTF-8; it is \"", ToValidUtf8(text), "\""));
  }
  StoreList stores;
  for (const absl::string_view path : absl::StrSplit(ToAbsl(text), ':')) {
    std::string normal = NormalizePath(ToStd(path));
    if (path.substr(0, 1) != "/" || normal == "/") {
      return absl::InvalidArgumentError(StrCat(origin,
                                               " must be an absolute path of a folder below /, such as "
                                               "/scratch/kernix, or several with \":\" between them, of ",
                                               "which the first is written; it is \"", text, "\""));
    }
    stores.written.empty() ? (void)(stores.written = std::move(normal)) : stores.read.push_back(std::move(normal));
  }
  return stores;
}

std::string TemporaryRuntimeDirectory(uid_t uid) { return StrCat("/tmp/kernix-", uid); }

// A folder that only `uid` can change, as login managers create it.
bool IsUsableRuntimeRoot(Env& env, const std::string& path, uid_t uid) {
  if (!path.starts_with('/')) return false;
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  return info.ok() && info->type == FileType::kDirectory && info->uid == uid && (info->mode & 0022) == 0;
}

std::string RuntimeDirectoryPath(Env& env, const GetEnv& get_env, uid_t uid) {
  const std::optional<std::string> root = get_env("XDG_RUNTIME_DIR");
  if (root && IsUsableRuntimeRoot(env, *root, uid)) return JoinPath(NormalizePath(*root), "kernix");
  return TemporaryRuntimeDirectory(uid);
}

// The name of a store's folder. It depends on the store, so that daemons of different stores never meet.
std::string NameForStore(const std::string& canonical_store) {
  return DigestOf(canonical_store).Hex().substr(0, kRunFolderNameSize);
}

RunFolder RunFolderAt(const std::string& directory) {
  return {.directory = directory,
          .socket = JoinPath(directory, kSocketName),
          .lock = JoinPath(directory, kLockName),
          .start_lock = JoinPath(directory, kStartLockName),
          .log = JoinPath(directory, "kernixd.log"),
          .warning = ""};
}

// EnsurePrivateDirectory(), or the check alone.
using Prepare = absl::Status (*)(Env& env, const std::string& path, uid_t uid);

absl::StatusOr<RunFolder> UsualRunFolder(Env& env, std::string root, uid_t uid, const std::string& canonical_store,
                                         Prepare prepare) {
  const std::string name = NameForStore(canonical_store);
  if (RunFolderAt(JoinPath(root, name)).socket.size() > kMaxSocketPath) root = TemporaryRuntimeDirectory(uid);
  KERNIX_RETURN_IF_ERROR(prepare(env, root, uid));
  RunFolder folder = RunFolderAt(JoinPath(root, name));
  KERNIX_RETURN_IF_ERROR(prepare(env, folder.directory, uid));
  return folder;
}

absl::StatusOr<RunFolder> RunFolderInStore(Env& env, uid_t uid, const std::string& canonical_store, Prepare prepare) {
  const std::string folder = JoinPath(canonical_store, kPrivateFolder);
  RunFolder run_folder = RunFolderAt(JoinPath(folder, kRunFolder));
  if (run_folder.socket.size() > kMaxSocketPath) return absl::InvalidArgumentError("the store's path is too long");
  KERNIX_RETURN_IF_ERROR(prepare(env, folder, uid));
  KERNIX_RETURN_IF_ERROR(prepare(env, run_folder.directory, uid));
  return run_folder;
}

absl::StatusOr<RunFolder> RunFolderBelow(Env& env, const GetEnv& get_env, uid_t uid, const std::string& store_directory,
                                         Prepare prepare) {
  const std::string store = CanonicalPath(env, store_directory);
  absl::StatusOr<RunFolder> usual = UsualRunFolder(env, RuntimeDirectoryPath(env, get_env, uid), uid, store, prepare);
  if (!absl::IsPermissionDenied(usual.status())) return usual;
  absl::StatusOr<RunFolder> in_store = RunFolderInStore(env, uid, store, prepare);
  if (!in_store.ok()) return usual;
  in_store->warning = StrCat(Sentence(usual.status()), " Until then kernixd's socket lies in ", in_store->directory);
  return in_store;
}

// A folder on the node's own disk. Any user could create it first, so it must belong to us.
absl::StatusOr<StoreList> NodeLocalStore(Env& env, const GetEnv& get_env, uid_t uid) {
  StoreList stores{.written = StrCat("/var/tmp/kernix-", uid)};
  const absl::Status status = EnsurePrivateDirectory(env, stores.written, uid);
  if (status.ok()) return stores;
  const std::string why = StrCat(Sentence(status), " Or set KERNIX_CACHE_DIR to a folder of your own.");
  const absl::StatusOr<std::string> runtime = RuntimeDirectory(env, get_env, uid);
  if (!absl::IsPermissionDenied(status) || !runtime.ok()) return absl::Status(status.code(), why);
  stores.written = JoinPath(*runtime, "store");
  stores.warning = StrCat(why, " Until then builds go to ", stores.written,
                          ", which may be small, and may not outlive a logout or a restart.");
  return stores;
}

absl::StatusOr<StoreList> UnnamedStore(Env& env, const GetEnv& get_env, uid_t uid) {
  const std::optional<std::string> cache = CacheHome(get_env, uid);
  if (!cache || !IsValidUtf8(*cache)) return NodeLocalStore(env, get_env, uid);
  const std::string store = NormalizePath(JoinPath(*cache, "kernix"));
  KERNIX_ASSIGN_OR_RETURN(const bool network, env.OnNetworkFileSystem(store));
  if (network) return NodeLocalStore(env, get_env, uid);
  return StoreList{.written = store};
}

}  // namespace

std::optional<std::string> CacheHome(const GetEnv& get_env, uid_t uid) {
  const std::optional<std::string> cache = get_env("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) return *cache;  // the specification says to ignore a relative one
  std::string home = get_env("HOME").value_or("");
  if (!home.starts_with('/')) home = LookUpUser(uid).home;
  if (!home.starts_with('/')) return std::nullopt;
  return JoinPath(home, ".cache");
}

absl::StatusOr<std::string> RuntimeDirectory(Env& env, const GetEnv& get_env, uid_t uid) {
  std::string path = RuntimeDirectoryPath(env, get_env, uid);
  KERNIX_RETURN_IF_ERROR(EnsurePrivateDirectory(env, path, uid));
  return path;
}

absl::StatusOr<RunFolder> RunFolderForStore(Env& env, const GetEnv& get_env, uid_t uid,
                                            const std::string& store_directory) {
  return RunFolderBelow(env, get_env, uid, store_directory, EnsurePrivateDirectory);
}

absl::StatusOr<RunFolder> FindRunFolderForStore(Env& env, const GetEnv& get_env, uid_t uid,
                                                const std::string& store_directory) {
  return RunFolderBelow(env, get_env, uid, store_directory, CheckPrivateDirectory);
}

absl::StatusOr<StoreList> UserStores(Env& env, const GetEnv& get_env, uid_t uid, std::string_view origin,
                                     std::string_view named) {
  if (!named.empty()) return ParseStoreList(origin, named);
  if (const std::optional<std::string> asked = get_env("KERNIX_CACHE_DIR")) {
    return ParseStoreList("KERNIX_CACHE_DIR", *asked);
  }
  return UnnamedStore(env, get_env, uid);
}

absl::StatusOr<std::string> DefaultStoreDirectory(Env& env, const GetEnv& get_env, uid_t uid) {
  KERNIX_ASSIGN_OR_RETURN(StoreList stores, UserStores(env, get_env, uid, "", ""));
  return std::move(stores.written);
}

namespace {

constexpr char kProcessPrefix[] = "process ";
constexpr char kSocketPrefix[] = "at ";

std::string HolderFile(const std::string& store_directory) {
  return JoinPath(JoinPath(store_directory, kPrivateFolder), kHolderFile);
}

std::vector<std::string> Lines(Env& env, const std::string& store_directory) {
  return absl::StrSplit(env.ReadFile(HolderFile(store_directory)).value_or(""), '\n', absl::SkipEmpty());
}

// What follows `prefix` in the line that begins with it; empty if none does.
std::string LineOf(Env& env, const std::string& store_directory, std::string_view prefix) {
  for (const std::string& line : Lines(env, store_directory)) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, ToAbsl(prefix))) return std::string(rest);
  }
  return "";
}

bool HasOpen(Env& env, pid_t process, const std::string& path) {
  const absl::StatusOr<FileInfo> file = env.Stat(path);
  const std::string folder = StrCat("/proc/", process, "/fd");
  const absl::StatusOr<std::vector<std::string>> descriptors = env.ListDirectory(folder);
  return file.ok() && descriptors.ok() &&
         std::any_of(descriptors->begin(), descriptors->end(), [&](const std::string& descriptor) {
           const absl::StatusOr<FileInfo> open = env.Stat(JoinPath(folder, descriptor));
           return open.ok() && FileId::Of(*open) == FileId::Of(*file);
         });
}

}  // namespace

absl::Status NoteStoreHolder(Env& env, const std::string& store_directory, const std::string& socket) {
  const std::string line = socket.empty() ? "" : StrCat(kSocketPrefix, socket, "\n");
  return env.WriteFile(HolderFile(store_directory), StrCat(kProcessPrefix, getpid(), "\n", line), 0600);
}

std::string DescribeStoreHolder(Env& env, const std::string& store_directory) {
  return absl::StrJoin(Lines(env, store_directory), ", ");
}

std::string SocketOfStoreHolder(Env& env, const std::string& store_directory) {
  std::string path = LineOf(env, store_directory, kSocketPrefix);
  return path.starts_with('/') ? path : "";
}

// The note may be old, or of another process namespace. The lock is not.
std::optional<pid_t> ProcessOfStoreHolder(Env& env, const std::string& store_directory) {
  pid_t process = 0;
  const bool is_noted = absl::SimpleAtoi(LineOf(env, store_directory, kProcessPrefix), &process) && process > 0;
  const std::string lock = JoinPath(JoinPath(store_directory, kPrivateFolder), "lock");
  return is_noted && HasOpen(env, process, lock) ? std::optional(process) : std::nullopt;
}

}  // namespace kernix
