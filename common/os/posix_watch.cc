// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "common/os/posix_env.h"
#include "common/os/unique_fd.h"

namespace kernix::posix {
namespace {

// As many as the kernel follows.
constexpr int kMostLinks = 40;

// A file has an event, IN_ATTRIB, also when one of its names is removed or given to another file. A folder cannot lose
// its name in another way than by being moved, as long as there is something in it.
constexpr uint32_t kFileEvents = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVE_SELF | IN_DELETE_SELF;
constexpr uint32_t kFolderEvents = IN_MOVE_SELF | IN_DELETE_SELF | IN_ONLYDIR;

// Those that only this kernel changes, and only by calls of which inotify tells. (ZFS can roll back a mounted file
// system.)
bool IsLocalFileSystem(uint32_t type) {
  static constexpr uint32_t kTypes[] = {
      0xEF53,      // ext2, ext3, ext4
      0x58465342,  // XFS
      0x9123683E,  // Btrfs
      0xF2F52010,  // F2FS
      0x01021994,  // tmpfs
      0x794C7630,  // overlayfs
      0x73717368,  // SquashFS
      0xE0F5E1E2,  // EROFS
  };
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

// A folder, link or file on the way to a file.
struct Place {
  FileId id;
  mode_t type = 0;
  int watch = -1;  // inotify's number of it

  bool operator==(const Place&) const = default;
};

// Walks along a path as the kernel does, link by link.
class Way {
 public:
  explicit Way(const std::string& path) { Push(path); }

  // Moves to the next component. False at the end.
  bool Next() {
    while (!rest_.empty()) {
      const std::string name = std::move(rest_.back());
      rest_.pop_back();
      if (name == "..") {
        folder_.resize(std::min(folder_.rfind('/'), folder_.size()));
      } else if (name != ".") {
        at_ = StrCat(folder_, "/", name);
        return true;
      }
    }
    return false;
  }
  // Where it is: no folder in front of the last component is a link.
  const std::string& at() const { return at_; }
  // The next component is in the folder at(), or is the end.
  void Enter() { folder_ = at_; }
  // The next component is the target of the link at(). False if that cannot be read, or there were too many.
  bool Follow() {
    std::array<char, 4096> target{};
    const ssize_t length = readlink(at_.c_str(), target.data(), target.size());
    if (length <= 0 || length == static_cast<ssize_t>(target.size()) || ++links_ > kMostLinks) return false;
    Push(std::string(target.data(), static_cast<size_t>(length)));
    return true;
  }

 private:
  void Push(const std::string& path) {
    if (path.starts_with('/')) folder_.clear();
    const std::vector<std::string> names = absl::StrSplit(path, '/', absl::SkipEmpty());
    rest_.insert(rest_.end(), names.rbegin(), names.rend());
  }

  std::string folder_;  // "" is the root
  std::string at_;
  std::vector<std::string> rest_;  // the other way round: its last one comes next
  int links_ = 0;
};

class InotifyWatch : public FileWatch {
 public:
  InotifyWatch(UniqueFd events, UniqueFd mounts) : events_(std::move(events)), mounts_(std::move(mounts)) {}

  // Between a check of a path and its watch, somebody may put something else there. So each new path is visited twice:
  // if it is the same, its watch tells of all that has happened since the first visit.
  bool Add(const std::string& path) override {
    if (is_outdated_) RemoveAll();
    Places found;
    if (!WatchWay(path, found)) return false;
    const bool is_still_there =
        std::all_of(found.begin(), found.end(), [&](const auto& one) { return WatchPlace(one.first) == one.second; });
    if (is_still_there) places_.merge(found);
    return is_still_there;
  }

  bool Changed() override {
    std::array<pollfd, 2> asked{pollfd{events_.get(), POLLIN, 0}, pollfd{mounts_.get(), POLLPRI, 0}};
    const int ready = poll(asked.data(), asked.size(), 0);
    if (ready == 0) return false;
    const bool has_mounted = ready < 0 || asked[1].revents != 0;
    if (!ReadEvents() && !has_mounted) return false;
    places_.clear();
    is_local_.clear();
    is_outdated_ = true;
    return true;
  }

 private:
  using Places = std::map<std::string, Place>;  // by a path without links to its folder

  // Watches all that `path` leads through. Adds to `found` what is not in places_ yet.
  bool WatchWay(const std::string& path, Places& found) {
    if (!path.starts_with('/')) return false;
    mode_t type = S_IFDIR;
    for (Way way(path); way.Next();) {
      const auto known = places_.find(way.at());
      const std::optional<Place> place = known != places_.end() ? known->second : WatchPlace(way.at());
      if (!place) return false;
      if (known == places_.end()) found.emplace(way.at(), *place);
      type = place->type;
      if (!S_ISLNK(type)) {
        way.Enter();
      } else if (!way.Follow()) {
        return false;
      }
    }
    return S_ISREG(type);
  }

  std::optional<Place> WatchPlace(const std::string& path) {
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || !IsLocal(path, info.st_dev)) return std::nullopt;
    const uint32_t events = S_ISDIR(info.st_mode) ? kFolderEvents : kFileEvents;
    const int watch = inotify_add_watch(events_.get(), path.c_str(), events | IN_DONT_FOLLOW);
    if (watch < 0) return std::nullopt;
    watches_.insert(watch);
    if (watches_.size() > kMostWatches) {
      inotify_rm_watch(events_.get(), watch);
      watches_.erase(watch);
      return std::nullopt;
    }
    return Place{{info.st_dev, info.st_ino}, info.st_mode & S_IFMT, watch};
  }

  bool IsLocal(const std::string& path, uint64_t device) {
    const auto known = is_local_.find(device);
    if (known != is_local_.end()) return known->second;
    const UniqueFd place(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct statfs info {};
    const bool is_local =
        place.ok() && fstatfs(place.get(), &info) == 0 && IsLocalFileSystem(static_cast<uint32_t>(info.f_type));
    return is_local_[device] = is_local;
  }

  // Whether there are any but the ends of watches, each of which has been removed here or has had an event before.
  bool ReadEvents() {
    bool any = false;
    alignas(inotify_event) std::array<char, 16 << 10> buffer;
    while (true) {
      const ssize_t bytes = read(events_.get(), buffer.data(), buffer.size());
      if (bytes <= 0) return any;
      for (size_t at = 0; at < static_cast<size_t>(bytes);) {
        inotify_event event{};
        std::memcpy(&event, buffer.data() + at, sizeof(event));
        any = any || (event.mask & IN_IGNORED) == 0;
        at += sizeof(event) + event.len;
      }
    }
  }

  void RemoveAll() {
    for (const int watch : watches_) inotify_rm_watch(events_.get(), watch);
    watches_.clear();
    is_outdated_ = false;
  }

  const UniqueFd events_;  // inotify
  const UniqueFd mounts_;  // the list of mounts; the kernel marks it when one is made or removed
  Places places_;
  absl::flat_hash_set<int> watches_;   // all that inotify has
  std::map<uint64_t, bool> is_local_;  // by device
  bool is_outdated_ = false;           // watches_ are of a time before the last change
};

}  // namespace

std::unique_ptr<FileWatch> PosixEnv::WatchFiles() {
  UniqueFd events(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  UniqueFd mounts(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  if (!events.ok() || !mounts.ok()) return nullptr;
  return std::make_unique<InotifyWatch>(std::move(events), std::move(mounts));
}

}  // namespace kernix::posix
