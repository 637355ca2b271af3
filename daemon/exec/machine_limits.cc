// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/machine_limits.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/paths.h"
#include "common/base/strings.h"

namespace kernix::exec {
namespace {

constexpr char kCgroupRoot[] = "/sys/fs/cgroup";

std::string Trimmed(const std::string& text) { return std::string(absl::StripAsciiWhitespace(text)); }

// The lines of a file, which may be absent.
std::vector<std::string> Lines(Env& env, const std::string& path) {
  const absl::StatusOr<std::string> text = env.ReadFile(path);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, '\n', absl::SkipEmpty());
}

// The value of "Name:   value" in a file of /proc. Empty if absent.
std::string ProcField(Env& env, const std::string& path, const std::string& name) {
  const std::string prefix = name + ":";
  for (const std::string& line : Lines(env, path)) {
    if (line.starts_with(prefix)) return Trimmed(line.substr(prefix.size()));
  }
  return "";
}

// The folders below `mount` of the cgroup `path` and of all its parents. In a container, `path` may be a path of the
// host of which only the mount's root is visible; callers skip files that do not exist.
std::vector<std::string> CgroupFolders(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  for (; path.size() > 1; path = Dirname(path)) folders.push_back(mount + path);
  folders.push_back(mount);
  return folders;
}

// The folders that hold the limits of `controller`.
std::vector<std::string> LimitFolders(Env& env, std::string_view controller) {
  std::vector<std::string> folders;
  for (const std::string& line : Lines(env, "/proc/self/cgroup")) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));  // id:controllers:path
    if (parts.size() != 3 || !parts[2].starts_with("/")) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool version2 = parts[1].empty();
    if (!version2 && std::find(controllers.begin(), controllers.end(), controller) == controllers.end()) continue;
    const std::string mount = version2 ? kCgroupRoot : StrCat(kCgroupRoot, "/", controller);
    for (std::string& folder : CgroupFolders(mount, parts[2])) folders.push_back(std::move(folder));
  }
  return folders;
}

// The first line of a limit's file. Empty if the file does not exist.
std::string ReadLimit(Env& env, const std::string& path) {
  const std::vector<std::string> lines = Lines(env, path);
  return lines.empty() ? "" : Trimmed(lines.front());
}

// Processors for a "quota period" pair in microseconds. nullopt for "max" and -1, which mean no limit.
std::optional<int> Quota(const std::string& quota, const std::string& period) {
  int64_t used = 0;
  int64_t whole = 0;
  if (!absl::SimpleAtoi(quota, &used) || !absl::SimpleAtoi(period, &whole) || used <= 0 || whole <= 0) return {};
  return static_cast<int>((used + whole - 1) / whole);
}

std::optional<int> CpuQuota(Env& env, const std::string& folder) {
  const std::string version2 = ReadLimit(env, folder + "/cpu.max");
  if (version2.empty()) {
    return Quota(ReadLimit(env, folder + "/cpu.cfs_quota_us"), ReadLimit(env, folder + "/cpu.cfs_period_us"));
  }
  const std::vector<std::string> parts = absl::StrSplit(version2, ' ');
  return parts.size() == 2 ? Quota(parts[0], parts[1]) : std::nullopt;
}

// The number of elements in a list such as "0-3,8". 0 if it cannot be read.
int CountOfList(const std::string& list) {
  int count = 0;
  const std::vector<std::string> ranges = absl::StrSplit(list, ',');
  for (const std::string& range : ranges) {
    const std::vector<std::string> ends = absl::StrSplit(range, '-');
    int first = 0;
    int last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) || last < first) return 0;
    count += last - first + 1;
  }
  return count;
}

uint64_t MachineMemory(Env& env) {
  uint64_t kib = 0;
  const std::string field = ProcField(env, "/proc/meminfo", "MemTotal");
  return absl::SimpleAtoi(absl::StripSuffix(field, " kB"), &kib) ? kib * 1024 : 0;
}

// Limits of this process. nullopt: unlimited.
struct OwnLimits {
  std::optional<uint64_t> soft, hard;
};

std::optional<uint64_t> LimitOf(const std::string& text) {
  uint64_t limit = 0;
  return absl::SimpleAtoi(text, &limit) ? std::optional(limit) : std::nullopt;
}

// `name` has three words, as in "Max file size".
OwnLimits ReadOwnLimits(Env& env, std::string_view name) {
  for (const std::string& line : Lines(env, "/proc/self/limits")) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() >= 5 && line.starts_with(name)) return {LimitOf(words[3]), LimitOf(words[4])};
  }
  return {};
}

}  // namespace

int UsableProcessors(Env& env) {
  int count = std::max(1, CountOfList(ProcField(env, "/proc/self/status", "Cpus_allowed_list")));
  for (const std::string& folder : LimitFolders(env, "cpu")) {
    if (const std::optional<int> quota = CpuQuota(env, folder)) count = std::min(count, *quota);
  }
  return count;
}

uint64_t UsableMemory(Env& env) {
  uint64_t bytes = MachineMemory(env);
  for (const std::string& folder : LimitFolders(env, "memory")) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      uint64_t limit = 0;
      if (!absl::SimpleAtoi(ReadLimit(env, folder + name), &limit) || limit == 0) continue;
      bytes = bytes == 0 ? limit : std::min(bytes, limit);
    }
  }
  return bytes;
}

std::optional<uint64_t> FileSizeLimit(Env& env, uint64_t wanted) {
  const OwnLimits own = ReadOwnLimits(env, "Max file size ");
  return wanted == 0 ? own.soft : std::min(wanted, own.hard.value_or(wanted));
}

std::optional<uint64_t> HardCpuLimit(Env& env) { return ReadOwnLimits(env, "Max cpu time ").hard; }

}  // namespace kernix::exec
