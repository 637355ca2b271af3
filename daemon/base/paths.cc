// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/digest.h"
#include "daemon/base/guarded_path.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"

namespace kernix {
namespace {

constexpr char kSocketName[] = "kernixd.sock";

// The user database's entry of `uid`, as far as we need it. Empty texts when there is none.
struct UserEntry {
  std::string name;
  std::string home;
};

UserEntry LookUpUser(uid_t uid) {
  std::vector<char> buffer(16384);
  struct passwd entry;
  struct passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  return {.name = entry.pw_name, .home = entry.pw_dir};
}

absl::Status CheckPrivateDirectory(const FileInfo& info, const std::string& path, uid_t uid) {
  if (info.type != FileType::kDirectory) {
    return absl::PermissionDeniedError(StrCat("will not use ", path, ": it is ",
                                              info.type == FileType::kSymlink ? "a link" : "no folder", " (owned by ",
                                              DescribeUser(info.uid), "). Remove it, or have it removed."));
  }
  if (info.uid != uid) {
    return absl::PermissionDeniedError(StrCat("will not use ", path, ": it belongs to ", DescribeUser(info.uid),
                                              ", not to ", DescribeUser(uid), ". Have it removed."));
  }
  if ((info.mode & 0077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("will not use %s: its mode %04o lets others in. Check what is in it, then: chmod 700 %s", path,
                        info.mode, path));
  }
  return absl::OkStatus();
}

std::string TemporaryRuntimeDirectory(uid_t uid) { return StrCat("/tmp/kernix-", uid); }

// A folder that only `uid` can change, as the login manager makes it.
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

// The folder of one store: named by the store, so that daemons of different stores never meet.
std::string NameForStore(const std::string& canonical_store) { return DigestOf(canonical_store).Hex().substr(0, 16); }

DaemonPlace PlaceIn(const std::string& directory) {
  return {.directory = directory,
          .socket = JoinPath(directory, kSocketName),
          .lock = JoinPath(directory, "kernixd.lock"),
          .start_lock = JoinPath(directory, "start.lock"),
          .log = JoinPath(directory, "kernixd.log"),
          .warning = ""};
}

absl::StatusOr<DaemonPlace> UsualPlace(Env& env, std::string root, uid_t uid, const std::string& canonical_store) {
  const std::string name = NameForStore(canonical_store);
  if (PlaceIn(JoinPath(root, name)).socket.size() > kMaxSocketPath) root = TemporaryRuntimeDirectory(uid);
  KERNIX_RETURN_IF_ERROR(EnsurePrivateDirectory(env, root, uid));
  DaemonPlace place = PlaceIn(JoinPath(root, name));
  KERNIX_RETURN_IF_ERROR(EnsurePrivateDirectory(env, place.directory, uid));
  return place;
}

absl::StatusOr<DaemonPlace> PlaceInStore(Env& env, uid_t uid, const std::string& canonical_store) {
  const std::string folder = JoinPath(canonical_store, kPrivateFolder);
  DaemonPlace place = PlaceIn(JoinPath(folder, kPlaceFolder));
  if (place.socket.size() > kMaxSocketPath) return absl::InvalidArgumentError("the store's path is too long");
  KERNIX_RETURN_IF_ERROR(EnsurePrivateDirectory(env, folder, uid));
  KERNIX_RETURN_IF_ERROR(EnsurePrivateDirectory(env, place.directory, uid));
  return place;
}

// The user's cache folder, and where it is not given, the reason to look elsewhere is that there is no home.
std::optional<std::string> CacheHome(const GetEnv& get_env, uid_t uid) {
  const std::optional<std::string> cache = get_env("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) return *cache;  // the specification says to ignore a relative one
  std::string home = get_env("HOME").value_or("");
  if (!home.starts_with('/')) home = LookUpUser(uid).home;
  if (!home.starts_with('/')) return std::nullopt;
  return JoinPath(home, ".cache");
}

// The node's own disk. Anybody can make that folder first, so it has to be ours.
absl::StatusOr<std::string> NodeLocalStore(Env& env, uid_t uid) {
  const std::string path = StrCat("/var/tmp/kernix-", uid);
  const absl::Status status = EnsurePrivateDirectory(env, path, uid);
  if (status.ok()) return path;
  return absl::Status(status.code(), StrCat(status.message(), " Or set KERNIX_CACHE_DIR to a folder of your own."));
}

}  // namespace

std::optional<std::string> ProcessGetEnv(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string JoinPath(std::string_view a, std::string_view b) {
  if (a.empty()) return std::string(b);
  if (b.empty()) return std::string(a);
  while (b.front() == '/' && b.size() > 1) b.remove_prefix(1);
  return a.back() == '/' ? StrCat(a, b) : StrCat(a, "/", b);
}

std::string Basename(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  if (path == "/") return "/";
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string Dirname(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return path.empty() ? "/" : std::string(path);
}

std::string NormalizePath(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::vector<std::string> parts;
  for (absl::string_view piece : absl::StrSplit(ToAbsl(path), '/', absl::SkipEmpty())) {
    std::string part(piece);
    if (part == ".") continue;
    if (part != ".." || (!absolute && (parts.empty() || parts.back() == ".."))) {
      parts.push_back(std::move(part));
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  const std::string joined = absl::StrJoin(parts, "/");
  if (absolute) return "/" + joined;
  return joined.empty() ? "." : joined;
}

std::string CanonicalPath(Env& env, const std::string& path) {
  std::string normal = NormalizePath(path);
  if (absl::StatusOr<std::string> real = env.RealPath(normal); real.ok()) return *std::move(real);
  const std::string parent = Dirname(normal);
  if (parent == normal || parent == ".") return normal;
  return JoinPath(CanonicalPath(env, parent), Basename(normal));
}

absl::Status EnsurePrivateDirectory(Env& env, const std::string& path, uid_t uid) {
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(path, 0700));
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env.Stat(path, /*follow=*/false));
  return CheckPrivateDirectory(info, path, uid);
}

absl::Status CheckGuardedDirectory(Env& env, const std::string& path, uid_t uid) {
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env.Stat(path));
  if (info.uid != uid && info.uid != 0) {
    return absl::PermissionDeniedError(
        StrCat("will not use ", path, ": it belongs to ", DescribeUser(info.uid), ", not to ", DescribeUser(uid)));
  }
  if ((info.mode & 0022) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrFormat(
      "will not use %s: its mode %04o lets others than its owner, %s, write to it. Check what is in it, then: "
      "chmod go-w %s",
      path, info.mode, DescribeUser(info.uid), path));
}

absl::Status EnsureOwnDirectory(Env& env, const std::string& path, uid_t uid) {
  KERNIX_RETURN_IF_ERROR(EnsurePrivateDirectory(env, path, uid));
  return GuardedRealPath(env, path, {uid}).status();
}

std::string DescribeUser(uid_t uid) {
  const std::string name = LookUpUser(uid).name;
  return name.empty() ? StrCat("uid ", uid) : StrCat(name, " (uid ", uid, ")");
}

absl::StatusOr<std::string> UserRuntimeDirectory(Env& env, const GetEnv& get_env, uid_t uid) {
  const std::string path = RuntimeDirectoryPath(env, get_env, uid);
  KERNIX_RETURN_IF_ERROR(EnsurePrivateDirectory(env, path, uid));
  return path;
}

absl::StatusOr<DaemonPlace> PlaceForStore(Env& env, const GetEnv& get_env, uid_t uid,
                                          const std::string& store_directory) {
  const std::string store = CanonicalPath(env, store_directory);
  absl::StatusOr<DaemonPlace> usual = UsualPlace(env, RuntimeDirectoryPath(env, get_env, uid), uid, store);
  if (!absl::IsPermissionDenied(usual.status())) return usual;
  absl::StatusOr<DaemonPlace> in_store = PlaceInStore(env, uid, store);
  if (!in_store.ok()) return usual;
  in_store->warning = StrCat(usual.status().message(), " Until then kernixd's socket lies in ", in_store->directory);
  return in_store;
}

absl::StatusOr<std::string> DefaultStoreDirectory(Env& env, const GetEnv& get_env, uid_t uid) {
  if (const std::optional<std::string> asked = get_env("KERNIX_CACHE_DIR")) {
    if (asked->starts_with('/')) return NormalizePath(*asked);
    return absl::InvalidArgumentError(
        StrCat("KERNIX_CACHE_DIR must be an absolute path, such as /scratch/kernix; it is \"", *asked, "\""));
  }
  const std::optional<std::string> cache = CacheHome(get_env, uid);
  if (!cache) return NodeLocalStore(env, uid);
  const std::string store = NormalizePath(JoinPath(*cache, "kernix"));
  KERNIX_ASSIGN_OR_RETURN(const bool network, env.OnNetworkFileSystem(store));
  if (network) return NodeLocalStore(env, uid);
  return store;
}

}  // namespace kernix
