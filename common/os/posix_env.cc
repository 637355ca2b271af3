// SPDX-License-Identifier: Apache-2.0
#include "common/os/posix_env.h"

#include <grp.h>
#include <pwd.h>

#include <chrono>

namespace kernix {

Env& Env::Posix() {
  static Env* const env = new posix::PosixEnv;  // never destroyed: threads may use it while the process exits
  return *env;
}

namespace posix {
namespace {

// Space for the data that a database entry points to. A group may list thousands of members.
constexpr size_t kBufferBytes = size_t{1} << 20;

bool HasNoMemberBut(const struct group& group, std::string_view user) {
  for (char** member = group.gr_mem; *member != nullptr; ++member) {
    if (*member != user) return false;
  }
  return true;
}

}  // namespace

MonotonicTime PosixEnv::Now() { return std::chrono::steady_clock::now(); }

int64_t PosixEnv::UnixMillis() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Finding all users with this primary group would mean reading the whole database. The name decides instead, because
// useradd gives each user's own group the user's name.
bool PosixEnv::IsPrivateGroup(gid_t group, uid_t user) {
  std::vector<char> user_buffer(kBufferBytes);
  struct passwd user_entry {};
  struct passwd* found_user = nullptr;
  if (getpwuid_r(user, &user_entry, user_buffer.data(), user_buffer.size(), &found_user) != 0) return false;
  if (found_user == nullptr || user_entry.pw_gid != group) return false;
  std::vector<char> group_buffer(kBufferBytes);
  struct group group_entry {};
  struct group* found_group = nullptr;
  if (getgrgid_r(group, &group_entry, group_buffer.data(), group_buffer.size(), &found_group) != 0) return false;
  const std::string_view name = user_entry.pw_name;
  return found_group != nullptr && group_entry.gr_name == name && HasNoMemberBut(group_entry, name);
}

}  // namespace posix
}  // namespace kernix
