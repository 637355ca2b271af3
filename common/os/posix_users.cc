// SPDX-License-Identifier: Apache-2.0
#include "common/os/posix_users.h"

#include <grp.h>
#include <pwd.h>

#include <string_view>
#include <vector>

namespace kernix::posix {
namespace {

// For what an entry of the database points to. A group may list thousands of members.
constexpr size_t kBufferBytes = size_t{1} << 20;

bool HasNoMemberBut(const struct group& group, std::string_view user) {
  for (char** member = group.gr_mem; *member != nullptr; ++member) {
    if (*member != user) return false;
  }
  return true;
}

}  // namespace

// Whose first group it is cannot be asked of a database without reading all of it, so the name has to say it, as where
// useradd makes a group for each user.
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
