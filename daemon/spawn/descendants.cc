// SPDX-License-Identifier: Apache-2.0
#include "daemon/spawn/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "common/os/unique_fd.h"

namespace kernix::spawn {
namespace {

std::string ReadAll(int folder, const std::string& path) {
  const UniqueFd file(openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  for (ssize_t got = 0; file.ok() && (got = read(file.get(), part, sizeof(part))) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

std::vector<std::string> Threads(int proc, const std::string& process) {
  std::vector<std::string> threads;
  const int fd = openat(proc, (process + "/task").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = fd < 0 ? nullptr : fdopendir(fd);
  if (folder == nullptr) return threads;  // it has ended
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') threads.emplace_back(entry->d_name);
  }
  closedir(folder);
  return threads;
}

// By the numbers that the processes have in the namespace of `proc`. About `most` of them, if there are more.
std::vector<std::string> Descendants(int proc, size_t most = SIZE_MAX) {
  std::vector<std::string> found = {"self"};
  for (size_t i = 0; i < found.size() && found.size() <= most; ++i) {
    const std::string process = found[i];
    for (const std::string& thread : Threads(proc, process)) {
      std::istringstream children(ReadAll(proc, process + "/task/" + thread + "/children"));
      for (std::string child; children >> child;) found.push_back(child);
    }
  }
  found.erase(found.begin());
  return found;
}

// A process that has ended since /proc was read may have left its number to a stranger. So all are opened first, and
// signalled only if the number is still one of ours.
void Signal(int proc, int signal) {
  struct Opened {
    std::string process;
    UniqueFd fd;
  };
  std::vector<Opened> opened;
  for (const std::string& process : Descendants(proc)) {
    opened.push_back({process, UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, std::stoi(process), 0)))});
  }
  const std::vector<std::string> still = Descendants(proc);
  for (const Opened& one : opened) {
    if (std::find(still.begin(), still.end(), one.process) == still.end()) continue;
    if (one.fd.ok()) {
      syscall(SYS_pidfd_send_signal, one.fd.get(), signal, nullptr, 0);
    } else if (errno == ENOSYS) {  // before Linux 5.3
      kill(std::stoi(one.process), signal);
    }
  }
}

bool HasChildren() {
  siginfo_t info = {};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// Returns whether there are others.
bool Collect() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return HasChildren();
}

}  // namespace

bool HasMoreDescendants(int proc, size_t most) { return Descendants(proc, most + 1).size() > most; }

void KillDescendants(int proc, bool is_first) {
  if (is_first) {
    kill(-1, SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
    return;
  }
  for (timespec wait = {0, 500'000}; Collect(); wait.tv_nsec = std::min(2 * wait.tv_nsec, 50'000'000L)) {
    Signal(proc, SIGSTOP);  // so that they start no more
    Signal(proc, SIGKILL);
    nanosleep(&wait, nullptr);
  }
}

}  // namespace kernix::spawn
