// SPDX-License-Identifier: Apache-2.0
#include "daemon/spawn/cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "daemon/spawn/wall.h"

namespace kernix::spawn {
namespace {

// Of the process itself and its zygotes.
constexpr char kOwn[] = "spawn";

// The kernel counts threads, and kernix-spawn counts processes, but only at intervals.
constexpr int64_t kThreadsOfAProcess = 16;
constexpr int64_t kLeastThreads = 1024;
constexpr int64_t kMostThreads = 4 << 20;  // the kernel takes no larger number

// Does nothing if there is no such file: the kernel is older, or the controller is not delegated.
void Write(int folder, const std::string& name, const std::string& text) {
  const UniqueFd file(openat(folder, name.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.ok() && errno == ENOENT) return;
  Require(file.ok() && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()),
          "write " + name + " of a cgroup");
}

// Where the tree of version 2 is mounted: beside those of version 1, if there are any.
std::string Tree() {
  for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    struct statfs info = {};
    if (statfs(path, &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC) return path;
  }
  throw std::runtime_error("there are no cgroups of version 2");
}

// The path of this process's cgroup in the tree: "/system.slice/kernix-spawn.slice/…".
std::string PathInTree() {
  const std::string of_version_2 = "0::";
  std::ifstream cgroups("/proc/self/cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    if (line.starts_with(of_version_2)) return line.substr(of_version_2.size());
  }
  throw std::runtime_error("this process is in no cgroup of version 2");
}

// Starts a process in a cgroup below `parent`, which is gone afterwards.
void Try(int parent) {
  const JobCgroup cgroup(parent, {});
  const pid_t pid = cgroup.Fork();
  if (pid == 0) _exit(0);
  Require(pid > 0, "start a process in a cgroup");
  waitpid(pid, nullptr, 0);
}

}  // namespace

UniqueFd PrepareCgroup() {
  const std::string path = Tree() + PathInTree();
  UniqueFd folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Require(folder.ok(), "open " + path);
  Require(mkdirat(folder.get(), kOwn, 0755) == 0 || errno == EEXIST, "make a cgroup in " + path);
  Write(folder.get(), std::string(kOwn) + "/cgroup.procs", "0");
  bool has_memory = false;
  std::ifstream available(path + "/cgroup.controllers");
  for (std::string controller; available >> controller;) {
    if (controller != "memory" && controller != "pids") continue;
    has_memory = has_memory || controller == "memory";
    Write(folder.get(), "cgroup.subtree_control", "+" + controller);
  }
  if (!has_memory) {
    std::fputs("kernix-spawn: the processes of a job have no limit of memory together: no such controller\n", stderr);
  }
  Try(folder.get());
  return folder;
}

JobCgroup::JobCgroup(int parent, const Command& command) : parent_(parent) {
  if (parent < 0) return;
  for (int number = 0; name_.empty() || mkdirat(parent, name_.c_str(), 0755) != 0; ++number) {
    Require(name_.empty() || errno == EEXIST, "make a cgroup");
    name_ = "job-" + std::to_string(number);
  }
  folder_.reset(openat(parent, name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Require(folder_.ok(), "open a cgroup");
  if (command.max_address_space_bytes > 0) {
    Write(folder_.get(), "memory.max", std::to_string(command.max_address_space_bytes));
    Write(folder_.get(), "memory.swap.max", "0");
    Write(folder_.get(), "memory.oom.group", "1");  // a tool that lives on would blame the source
  }
  if (command.max_processes > 0) {
    const int64_t threads = std::clamp(kThreadsOfAProcess * command.max_processes, kLeastThreads, kMostThreads);
    Write(folder_.get(), "pids.max", std::to_string(threads));
  }
}

JobCgroup::~JobCgroup() {
  if (!folder_.ok()) return;
  constexpr int kTries = 20;  // a process that has been collected may hold it for a moment longer
  for (int tries = 0; unlinkat(parent_, name_.c_str(), AT_REMOVEDIR) != 0 && errno == EBUSY && tries < kTries;
       ++tries) {
    const timespec wait = {0, 1'000'000};
    nanosleep(&wait, nullptr);
  }
}

// A process that changed its cgroup would wait for milliseconds, until all processors have noticed.
pid_t JobCgroup::Fork() const {
  if (!folder_.ok()) return fork();
  struct clone_args arguments = {};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<uint64_t>(folder_.get());
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

bool JobCgroup::RanOutOfMemory() const {
  if (!folder_.ok()) return false;
  char text[512];
  const UniqueFd file(openat(folder_.get(), "memory.events", O_RDONLY | O_CLOEXEC));
  const ssize_t size = file.ok() ? read(file.get(), text, sizeof(text)) : 0;
  std::istringstream events(std::string(text, size > 0 ? static_cast<size_t>(size) : 0));
  std::string name;
  uint64_t times = 0;
  while (events >> name >> times) {
    if (name == "oom") return times > 0;  // "oom_kill" also counts those that the service's limit kills
  }
  return false;
}

void JobCgroup::Kill() const {
  const UniqueFd file(folder_.ok() ? openat(folder_.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC) : -1);
  static_cast<void>(!(file.ok() && write(file.get(), "1", 1) == 1));  // the job kills them in its own way, too
}

}  // namespace kernix::spawn
