// SPDX-License-Identifier: Apache-2.0
#include "common/os/private_directory.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_error.h"

namespace kernix {
namespace {

constexpr mode_t kSticky = 01000;
constexpr mode_t kWritableByGroup = 0020;
constexpr mode_t kWritableByAll = 0002;
constexpr int kMostLinks = 40;

// The components of `path` in reverse order, so that the next one is at the back.
std::vector<std::string> Reversed(std::string_view path) {
  std::vector<std::string> parts = absl::StrSplit(ToAbsl(path), '/', absl::SkipEmpty());
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// One walk from the root to the end of the path, link by link, in the order of the kernel.
class Walk {
 public:
  Walk(Env& env, const std::string& path, const std::vector<uid_t>& owners)
      : env_(env), path_(path), owners_(owners), ahead_(Reversed(path)) {}

  absl::StatusOr<std::string> ToTheEnd() {
    KERNIX_ASSIGN_OR_RETURN(const FileInfo top, env_.Stat("/", /*follow=*/false));
    owner_of_all_ = top.uid;
    KERNIX_RETURN_IF_ERROR(Enter("/", top));
    while (!ahead_.empty()) {
      const std::string name = std::move(ahead_.back());
      ahead_.pop_back();
      if (name == ".") continue;
      KERNIX_RETURN_IF_ERROR(name == ".." ? Enter(Dirname(here_)) : Step(JoinPath(here_, name)));
    }
    return here_;
  }

 private:
  absl::Status Step(const std::string& next) {
    KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env_.Stat(next, /*follow=*/false));
    if (here_is_sticky_ && !IsOurs(info.uid)) return Refuse(next, BelongsTo(info.uid));
    switch (info.type) {
      case FileType::kSymlink:
        return FollowLink(next);
      case FileType::kDirectory:
        return Enter(next, info);
      default:
        here_ = next;  // the end of the path; or the next component does not exist
        here_is_sticky_ = false;
        return absl::OkStatus();
    }
  }

  absl::Status FollowLink(const std::string& link) {
    if (++links_ > kMostLinks) return absl::NotFoundError(StrCat(path_, " has too many links in its path"));
    KERNIX_ASSIGN_OR_RETURN(const std::string target, env_.ReadLink(link));
    const std::vector<std::string> parts = Reversed(target);
    ahead_.insert(ahead_.end(), parts.begin(), parts.end());
    return target.starts_with('/') ? Enter("/") : absl::OkStatus();
  }

  absl::Status Enter(const std::string& folder) {
    KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env_.Stat(folder, /*follow=*/false));
    return Enter(folder, info);
  }

  absl::Status Enter(const std::string& folder, const FileInfo& info) {
    if (!IsOurs(info.uid) && info.uid != owner_of_all_) return Refuse(folder, BelongsTo(info.uid));
    here_ = folder;
    here_is_sticky_ = (info.mode & kSticky) != 0;
    return here_is_sticky_ ? absl::OkStatus() : CheckWriters(folder, info);
  }

  absl::Status CheckWriters(const std::string& folder, const FileInfo& info) {
    if ((info.mode & (kWritableByGroup | kWritableByAll)) == 0) return absl::OkStatus();
    KERNIX_ASSIGN_OR_RETURN(const bool has_list, env_.HasAccessList(folder));
    const bool owners_alone = (info.mode & kWritableByAll) == 0 && env_.IsPrivateGroup(info.gid, info.uid);
    if (owners_alone && !has_list) return absl::OkStatus();
    return Refuse(
        folder,
        absl::StrFormat("its mode %04o%s lets users other than %s write to it. Check its contents, then run: "
                        "chmod go-w %s",
                        info.mode, has_list ? " and its access list (getfacl)" : "", DescribeUser(info.uid), folder));
  }

  bool IsOurs(uid_t user) const {
    return user == 0 || std::find(owners_.begin(), owners_.end(), user) != owners_.end();
  }

  std::string BelongsTo(uid_t user) const {
    const std::string owner = DescribeUser(owners_.front());
    if (owners_.front() == 0) {
      return StrCat("it belongs to ", DescribeUser(user), ", not to ", owner,
                    ". Run this as that user, not as root, or have its owner changed to root");
    }
    return StrCat("it belongs to ", DescribeUser(user), ", neither to root nor to ", owner,
                  ". Have its owner changed to one of them");
  }

  absl::Status Refuse(const std::string& where, const std::string& why) const {
    const std::string on_the_way =
        where == path_ ? ""
                       : StrCat(where, " is on the way to it, and anyone who can write there can replace the store: ");
    return absl::PermissionDeniedError(StrCat("will not use ", path_, ": ", on_the_way, why));
  }

  Env& env_;
  const std::string& path_;
  const std::vector<uid_t>& owners_;
  std::vector<std::string> ahead_;  // the next component is the last element
  std::string here_;
  uid_t owner_of_all_ = 0;
  bool here_is_sticky_ = false;
  int links_ = 0;
};

}  // namespace

absl::StatusOr<std::string> GuardedRealPath(Env& env, const std::string& path, const std::vector<uid_t>& owners) {
  return Walk(env, path, owners).ToTheEnd();
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
  return CheckPrivateDirectory(env, path, uid);
}

absl::Status CheckPrivateDirectory(Env& env, const std::string& path, uid_t uid) {
  const absl::StatusOr<FileInfo> info = env.Stat(path, /*follow=*/false);
  if (absl::IsNotFound(info.status())) return absl::OkStatus();
  KERNIX_RETURN_IF_ERROR(info.status());
  if (info->type != FileType::kDirectory) {
    const bool is_link = info->type == FileType::kSymlink;
    return absl::Status(is_link ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kAlreadyExists,
                        StrCat("will not use ", path, ": it is ", is_link ? "a link" : "not a folder", " (owned by ",
                               DescribeUser(info->uid), "). Remove it, or have it removed."));
  }
  if (info->uid != uid) {
    return absl::PermissionDeniedError(StrCat("will not use ", path, ": it belongs to ", DescribeUser(info->uid),
                                              ", not to ", DescribeUser(uid), ". Have it removed."));
  }
  if ((info->mode & 0077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("will not use %s: its mode %04o lets others in. Check its contents, then run: chmod 700 %s",
                        path, info->mode, path));
  }
  // A umask may have shut its owner out.
  const bool is_shut = (info->mode & 0700) != 0700 && info->uid == geteuid();
  if (is_shut && chmod(path.c_str(), 0700) != 0) return ErrnoStatus(errno, "open to its owner", path);
  return absl::OkStatus();
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

std::string Sentence(const absl::Status& status) {
  return StrCat(status.message(), ToStd(status.message()).ends_with('.') ? "" : ".");
}

UserEntry LookUpUser(uid_t uid) {
  std::vector<char> buffer(16384);
  struct passwd entry;
  struct passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  return {.name = entry.pw_name, .home = entry.pw_dir};
}

std::string DescribeUser(uid_t uid) {
  const std::string name = LookUpUser(uid).name;
  return name.empty() ? StrCat("uid ", uid) : StrCat(name, " (uid ", uid, ")");
}

}  // namespace kernix
