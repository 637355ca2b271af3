// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/daemon_folders.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/folders.h"

namespace kernix::server {
namespace {

// Folders of stores have such names; see RunFolderForStore().
bool IsFolderOfStore(const std::string& name) {
  return name.size() == kRunFolderNameSize &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// The socket, its lock, the logs, and the lock of a client; see RunFolder.
bool IsFileOfDaemon(const std::string& name) { return name.starts_with("kernixd.") || name == kStartLockName; }

// Somebody else's folder may have such a name, too.
bool IsOldRunFolder(Env& env, const std::string& folder) {
  const int64_t limit = env.UnixMillis() - std::chrono::duration_cast<Duration>(kKeepRunFolder).count();
  const auto is_old = [&](const absl::StatusOr<FileInfo>& info, bool is_folder) {
    return info.ok() && (info->type == FileType::kDirectory) == is_folder && info->mtime_ns / 1'000'000 < limit;
  };
  const absl::StatusOr<std::vector<std::string>> names = env.ListDirectory(folder);
  return names.ok() && is_old(env.Stat(folder, /*follow=*/false), true) &&
         std::all_of(names->begin(), names->end(), [&](const std::string& name) {
           return IsFileOfDaemon(name) && is_old(env.Stat(JoinPath(folder, name), /*follow=*/false), false);
         });
}

// Holds the locks of a daemon and of a client that starts one, so that nobody uses the folder.
void RemoveIfDead(Env& env, const std::string& folder) {
  const auto start_lock = env.TryLockFile(JoinPath(folder, kStartLockName));
  const auto lock = env.TryLockFile(JoinPath(folder, kLockName));
  if (!start_lock.ok() || !lock.ok()) return;
  const absl::Status removed = env.RemoveTree(folder);
  if (removed.ok()) return Log(LogLevel::kInfo, "run_folder_removed", {{"folder", folder}});
  Log(LogLevel::kWarning, "run_folder_not_removed", {{"error", removed.message()}});
}

}  // namespace

void RemoveDeadRunFolders(Env& env, const std::string& own) {
  if (!IsFolderOfStore(Basename(own))) return;
  const std::string root = Dirname(own);
  const absl::StatusOr<std::vector<std::string>> names = env.ListDirectory(root);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string folder = JoinPath(root, name);
    if (folder != own && IsFolderOfStore(name) && IsOldRunFolder(env, folder)) RemoveIfDead(env, folder);
  }
}

namespace {

// A file that loses its name has IN_ATTRIB, even while somebody has it open.
constexpr uint32_t kEvents = IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_DONT_FOLLOW;

}  // namespace

OwnFilesWatch::OwnFilesWatch(std::vector<std::string> paths)
    : paths_(std::move(paths)),
      events_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      mounts_(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {
  Renew();
}

void OwnFilesWatch::Renew() {
  std::array<char, 4096> events;
  is_complete_ = true;
  while (read(events_.get(), events.data(), events.size()) > 0) continue;
  for (const std::string& path : paths_) {
    WatchWay(path);
    const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), free);
    if (real != nullptr && path != real.get()) WatchWay(real.get());
  }
}

void OwnFilesWatch::WatchWay(const std::string& path) {
  for (std::string folder = path; folder.size() > 1; folder = Dirname(folder)) {
    if (inotify_add_watch(events_.get(), folder.c_str(), kEvents) < 0 && errno == ENOSPC) is_complete_ = false;
  }
}

}  // namespace kernix::server
