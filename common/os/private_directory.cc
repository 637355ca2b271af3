// SPDX-License-Identifier: Apache-2.0
#include "common/os/private_directory.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/guarded_path.h"
#include "common/os/user_entry.h"

namespace kernix {
namespace {

absl::Status CheckIsPrivate(const FileInfo& info, const std::string& path, uid_t uid) {
  if (info.type != FileType::kDirectory) {
    const bool is_link = info.type == FileType::kSymlink;
    return absl::Status(is_link ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kAlreadyExists,
                        StrCat("will not use ", path, ": it is ", is_link ? "a link" : "not a folder", " (owned by ",
                               DescribeUser(info.uid), "). Remove it, or have it removed."));
  }
  if (info.uid != uid) {
    return absl::PermissionDeniedError(StrCat("will not use ", path, ": it belongs to ", DescribeUser(info.uid),
                                              ", not to ", DescribeUser(uid), ". Have it removed."));
  }
  if ((info.mode & 0077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("will not use %s: its mode %04o lets others in. Check its contents, then run: chmod 700 %s",
                        path, info.mode, path));
  }
  return absl::OkStatus();
}

}  // namespace

std::string CanonicalPath(Env& env, const std::string& path) {
  std::string normal = NormalizePath(path);
  if (absl::StatusOr<std::string> real = env.RealPath(normal); real.ok()) return *std::move(real);
  const std::string parent = Dirname(normal);
  if (parent == normal || parent == ".") return normal;
  return JoinPath(CanonicalPath(env, parent), Basename(normal));
}

absl::Status EnsurePrivateDirectory(Env& env, const std::string& path, uid_t uid) {
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(path, 0700));
  return CheckPrivateDirectory(env, path, uid);
}

absl::Status CheckPrivateDirectory(Env& env, const std::string& path, uid_t uid) {
  const absl::StatusOr<FileInfo> info = env.Stat(path, /*follow=*/false);
  if (absl::IsNotFound(info.status())) return absl::OkStatus();
  KERNIX_RETURN_IF_ERROR(info.status());
  return CheckIsPrivate(*info, path, uid);
}

absl::Status CheckGuardedDirectory(Env& env, const std::string& path, uid_t uid) {
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env.Stat(path));
  if (info.uid != uid && info.uid != 0) {
    return absl::PermissionDeniedError(
        StrCat("will not use ", path, ": it belongs to ", DescribeUser(info.uid), ", not to ", DescribeUser(uid)));
  }
  if ((info.mode & 0022) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrFormat(
      "will not use %s: its mode %04o lets users other than its owner, %s, write to it. Check its contents, then run: "
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

}  // namespace kernix
