// SPDX-License-Identifier: Apache-2.0
#include <grp.h>
#include <pwd.h>

#include <string_view>
#include <vector>

#include "common/os/posix_env.h"

namespace kernix::posix {
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

// Finding all users with this primary group would mean reading the whole database. The name decides instead, because
// useradd gives each user's own group the user's name.
bool IsPrivateGroup(gid_t group, uid_t user) {
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

}  // namespace kernix::posix
