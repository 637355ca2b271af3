// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/base/mutex.h"
#include "common/os/posix_env.h"
#include "common/os/unique_fd.h"

namespace kernix::posix {
namespace {

using Clock = std::chrono::steady_clock;

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  bool is_dead = false;
};

using Table = std::vector<Process>;

// "12 (name) S 1 12 ...": the name may contain any characters.
std::optional<Process> ParseStat(pid_t pid, std::string_view text) {
  const size_t close = text.rfind(')');
  if (close == std::string_view::npos) return std::nullopt;
  char state = 0;
  Process process{.pid = pid};
  const std::string rest(text.substr(close + 1));
  if (std::sscanf(rest.c_str(), " %c %d %d", &state, &process.parent, &process.group) != 3) return std::nullopt;
  process.is_dead = state == 'Z' || state == 'X';
  return process;
}

std::optional<Process> ReadProcess(int proc, std::string_view name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  const UniqueFd stat(openat(proc, (std::string(name) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!stat.ok()) return std::nullopt;  // it has ended
  std::array<char, 512> text;
  const ssize_t count = read(stat.get(), text.data(), text.size());
  if (count <= 0) return std::nullopt;
  return ParseStat(pid, std::string_view(text.data(), static_cast<size_t>(count)));
}

Table ReadTable() {
  Table table;
  DIR* const proc = opendir("/proc");
  if (proc == nullptr) return table;
  while (const dirent* entry = readdir(proc)) {
    if (const std::optional<Process> process = ReadProcess(dirfd(proc), entry->d_name)) table.push_back(*process);
  }
  closedir(proc);
  return table;
}

Table FamilyIn(const Table& table, pid_t leader) {
  std::multimap<pid_t, const Process*> children;
  std::set<pid_t> found;  // /proc is not read atomically: a process id may appear twice, even as its own ancestor
  Table family;
  for (const Process& process : table) {
    children.emplace(process.parent, &process);
    const bool in_group = process.pid == leader || process.group == leader;
    if (in_group && found.insert(process.pid).second) family.push_back(process);
  }
  for (size_t i = 0; i < family.size(); ++i) {
    const auto [begin, end] = children.equal_range(family[i].pid);
    for (auto child = begin; child != end; ++child) {
      if (found.insert(child->second->pid).second) family.push_back(*child->second);
    }
  }
  return family;
}

// All callers of CountFamily() share it.
class SharedTable {
 public:
  int CountFamily(pid_t leader) {
    const MutexLock lock(mutex_);
    if (Clock::now() >= outdated_) Refresh();
    const Table family = FamilyIn(table_, leader);
    return static_cast<int>(std::count_if(family.begin(), family.end(), [](const Process& p) { return !p.is_dead; }));
  }

 private:
  void Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    constexpr Clock::duration kAge = std::chrono::milliseconds(200);
    constexpr int kShare = 50;
    const Clock::time_point begin = Clock::now();
    table_ = ReadTable();
    const Clock::time_point end = Clock::now();
    outdated_ = end + std::max(kAge, kShare * (end - begin));
  }

  Mutex mutex_;
  Table table_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point outdated_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<pid_t> Family(pid_t leader) {
  std::vector<pid_t> pids;
  for (const Process& process : FamilyIn(ReadTable(), leader)) pids.push_back(process.pid);
  return pids;
}

int CountFamily(pid_t leader) {
  static SharedTable& table = *new SharedTable;
  return table.CountFamily(leader);
}

}  // namespace kernix::posix
