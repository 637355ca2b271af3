// SPDX-License-Identifier: Apache-2.0
#include "daemon/spawn/wall.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/os/unique_fd.h"

namespace kernix::spawn {
namespace {

// A folder that each machine has. The new root is built on it, once what lies below it is held by descriptors.
constexpr char kBuildingSite[] = "/usr";

constexpr char kWorkingFolder[] = "/proc/self/cwd";

void WriteTo(const char* path, const std::string& text) {
  const UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  Require(fd.ok() && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()),
          std::string("write ") + path);
}

// The numbers of the calling user mean the same in its new user namespace, and no other user exists there.
void MapUser(uid_t user, gid_t group) {
  WriteTo("/proc/self/setgroups", "deny");
  WriteTo("/proc/self/uid_map", std::to_string(user) + " " + std::to_string(user) + " 1");
  WriteTo("/proc/self/gid_map", std::to_string(group) + " " + std::to_string(group) + " 1");
}

// Of what is mounted at `tree` and below.
void MakeReadOnly(int tree, const std::string& path) {
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
  Require(syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes)) == 0,
          "make " + path + " read-only");
}

// A copy of what is mounted at `path` and below, to be mounted elsewhere.
UniqueFd CopyTree(const std::string& path) {
  UniqueFd tree(static_cast<int>(
      syscall(SYS_open_tree, AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)));
  Require(tree.ok(), "open " + path);
  return tree;
}

void Mount(const UniqueFd& tree, const std::string& path) {
  Require(syscall(SYS_move_mount, tree.get(), "", AT_FDCWD, path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0,
          "mount " + path);
}

void MountMemory(const std::string& path, const char* size = "size=1m") {
  Require(mount("kernix", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, size) == 0, "mount " + path);
}

void MakeFolders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), 0755);
  }
  mkdir(path.c_str(), 0755);
}

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool IsBelow(const std::string& path, const std::string& folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string TargetOf(const std::string& link) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = readlink(link.c_str(), target.data(), target.size());
  return size < 0 ? "" : std::string(target.data(), static_cast<size_t>(size));
}

// The names of a new root: found while the old one is still there, and made in the new one.
class NewRoot {
 public:
  // `path` and what it leads to get the same names as outside. A path that leads nowhere is left out.
  void Show(const std::string& path) { Show(path, kMostLinks); }

  // Builds the root on the current one, and enters it. `scratch`: is shown, and can be written; empty: none.
  void Enter(const std::string& scratch) {
    if (!scratch.empty()) trees_.push_back({scratch, CopyTree(scratch)});
    MountMemory(kBuildingSite);
    Require(chdir(kBuildingSite) == 0, "enter the new root");
    for (const auto& [link, target] : links_) MakeLink("." + link, target);
    for (const Tree& tree : trees_) Place(tree);
    MakeFolders(std::string(".") + kWorkingFolder);
    MakeFolders(std::string(".") + kTemporaryFolder);
    Require(syscall(SYS_pivot_root, ".", ".") == 0, "change the root");
    Require(umount2(".", MNT_DETACH) == 0 && chdir("/") == 0, "leave the old root");
    Require(mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) == 0,
            "make the root read-only");
  }

 private:
  static constexpr int kMostLinks = 40;

  struct Tree {
    std::string path;
    UniqueFd fd;
  };

  bool IsShown(const std::string& path) const {
    for (const Tree& tree : trees_) {
      if (IsBelow(path, tree.path)) return true;
    }
    return false;
  }

  // Links may stand anywhere in a path. What a link leads to is shown, too.
  void Show(const std::string& path, int links_left) {
    for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const std::string part = path.substr(0, end);
      const std::string target = TargetOf(part);
      if (!target.empty()) return ShowLink(part, target, end == std::string::npos ? "" : path.substr(end), links_left);
      if (end == std::string::npos) break;
    }
    if (IsShown(path) || access(path.c_str(), F_OK) != 0) return;
    UniqueFd tree = CopyTree(path);
    MakeReadOnly(tree.get(), path);
    std::erase_if(trees_, [&](const Tree& other) { return IsBelow(other.path, path); });
    trees_.push_back({path, std::move(tree)});
  }

  void ShowLink(const std::string& link, const std::string& target, const std::string& rest, int links_left) {
    if (links_left == 0) return;
    if (!IsShown(link)) links_.emplace(link, target);
    const std::string there = target.starts_with('/') ? target : ParentOf(link) + "/" + target;
    Show(Normalized(there) + rest, links_left - 1);
  }

  // Without "." and "..": what stands before ".." is no link, since links are followed from the front.
  static std::string Normalized(const std::string& path) {
    std::vector<std::string_view> parts;
    std::string_view left = path;
    while (!left.empty()) {
      left.remove_prefix(1);
      const std::string_view part = left.substr(0, left.find('/'));
      left.remove_prefix(part.size());
      if (part == ".." && !parts.empty()) parts.pop_back();
      if (!part.empty() && part != "." && part != "..") parts.push_back(part);
    }
    std::string normal;
    for (const std::string_view part : parts) normal.append("/").append(part);
    return normal;
  }

  static void MakeLink(const std::string& path, const std::string& target) {
    MakeFolders(ParentOf(path));
    symlink(target.c_str(), path.c_str());
  }

  static void Place(const Tree& tree) {
    const std::string path = "." + tree.path;
    struct stat info = {};
    Require(fstat(tree.fd.get(), &info) == 0, "look at " + tree.path);
    if (S_ISDIR(info.st_mode)) {
      MakeFolders(path);
    } else {
      MakeFolders(ParentOf(path));
      UniqueFd(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644)).reset();
    }
    Mount(tree.fd, path);
  }

  std::vector<Tree> trees_;
  std::set<std::pair<std::string, std::string>> links_;  // path, target
};

// The whole machine, read-only but for the scratch folder.
void SealRoot(const std::string& scratch) {
  const UniqueFd held = scratch.empty() ? UniqueFd() : CopyTree(scratch);
  const UniqueFd root(open("/", O_PATH | O_CLOEXEC));
  MakeReadOnly(root.get(), "/");
  if (held.ok()) Mount(held, scratch);
}

bool ShowsMachine(const Enclosure& enclosure) { return enclosure.readable == std::vector<std::string>{"/"}; }

}  // namespace

std::vector<std::string> SystemFiles() {
  return {"/usr",
          "/bin",
          "/sbin",
          "/lib",
          "/lib32",
          "/lib64",
          "/libx32",
          "/etc/ld.so.cache",
          "/etc/alternatives",
          "/nix/store",
          "/gnu/store"};
}

std::vector<std::string> SystemDevices() { return {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"}; }

int ZygoteNamespaces() {
  return CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS;
}

int JobNamespaces() { return CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC; }

void EnterWall(const Enclosure& enclosure, uid_t user, gid_t group) {
  MapUser(user, group);
  Require(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "take the mounts apart");
  if (ShowsMachine(enclosure)) return SealRoot(enclosure.scratch);
  NewRoot root;
  for (const std::string& path : SystemFiles()) root.Show(path);
  for (const std::string& path : SystemDevices()) root.Show(path);
  for (const std::string& path : enclosure.readable) root.Show(path);
  root.Enter(enclosure.scratch);
}

void EnterJob(const Enclosure& enclosure, const Command& command) {
  if (command.writable.empty()) MountMemory(kTemporaryFolder, "size=64m");
  if (enclosure.scratch.empty()) return;
  struct Folder {
    std::string path;
    UniqueFd tree;
  };
  std::vector<Folder> folders;
  for (const std::string& name : command.folders) {
    folders.push_back({enclosure.scratch + "/" + name, CopyTree(enclosure.scratch + "/" + name)});
    MakeReadOnly(folders.back().tree.get(), folders.back().path);
  }
  if (!command.writable.empty()) {
    const std::string path = enclosure.scratch + "/" + command.writable;
    folders.push_back({path, CopyTree(path)});
    if (!ShowsMachine(enclosure)) Mount(CopyTree(path), kWorkingFolder);
  }
  MountMemory(enclosure.scratch);  // covers the folders of other jobs
  for (const Folder& folder : folders) {
    MakeFolders(folder.path);
    Mount(folder.tree, folder.path);
  }
  Require(mount(nullptr, enclosure.scratch.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
                nullptr) == 0,
          "make " + enclosure.scratch + " read-only");
}

}  // namespace kernix::spawn
