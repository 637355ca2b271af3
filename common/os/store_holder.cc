// SPDX-License-Identifier: Apache-2.0
#include "common/os/store_holder.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "common/os/places.h"

namespace kernix {
namespace {

constexpr char kProcessPrefix[] = "process ";
constexpr char kSocketPrefix[] = "at ";

std::string HolderFile(const std::string& store_directory) {
  return JoinPath(JoinPath(store_directory, kPrivateFolder), kHolderFile);
}

std::vector<std::string> Lines(Env& env, const std::string& store_directory) {
  return absl::StrSplit(env.ReadFile(HolderFile(store_directory)).value_or(""), '\n', absl::SkipEmpty());
}

// What follows `prefix` in the line that begins with it; empty if none does.
std::string LineOf(Env& env, const std::string& store_directory, std::string_view prefix) {
  for (const std::string& line : Lines(env, store_directory)) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, ToAbsl(prefix))) return std::string(rest);
  }
  return "";
}

bool HasOpen(Env& env, pid_t process, const std::string& path) {
  const absl::StatusOr<FileInfo> file = env.Stat(path);
  const std::string folder = StrCat("/proc/", process, "/fd");
  const absl::StatusOr<std::vector<std::string>> descriptors = env.ListDirectory(folder);
  return file.ok() && descriptors.ok() &&
         std::any_of(descriptors->begin(), descriptors->end(), [&](const std::string& descriptor) {
           const absl::StatusOr<FileInfo> open = env.Stat(JoinPath(folder, descriptor));
           return open.ok() && FileId::Of(*open) == FileId::Of(*file);
         });
}

}  // namespace

absl::Status NoteStoreHolder(Env& env, const std::string& store_directory, const std::string& socket) {
  const std::string line = socket.empty() ? "" : StrCat(kSocketPrefix, socket, "\n");
  return env.WriteFile(HolderFile(store_directory), StrCat(kProcessPrefix, getpid(), "\n", line), 0600);
}

std::string DescribeStoreHolder(Env& env, const std::string& store_directory) {
  return absl::StrJoin(Lines(env, store_directory), ", ");
}

std::string SocketOfStoreHolder(Env& env, const std::string& store_directory) {
  std::string path = LineOf(env, store_directory, kSocketPrefix);
  return path.starts_with('/') ? path : "";
}

// The note may be old, or of another process namespace. The lock is not.
std::optional<pid_t> ProcessOfStoreHolder(Env& env, const std::string& store_directory) {
  pid_t process = 0;
  const bool is_noted = absl::SimpleAtoi(LineOf(env, store_directory, kProcessPrefix), &process) && process > 0;
  const std::string lock = JoinPath(JoinPath(store_directory, kPrivateFolder), "lock");
  return is_noted && HasOpen(env, process, lock) ? std::optional(process) : std::nullopt;
}

}  // namespace kernix
