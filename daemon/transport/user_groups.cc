// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/user_groups.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <vector>

#include "common/base/strings.h"

namespace kernix::server {
namespace {

// Space for the data that a database entry points to. A group may list thousands of members.
constexpr size_t kBufferBytes = size_t{1} << 20;

std::vector<gid_t> GroupsOf(const struct passwd& user) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  while (getgrouplist(user.pw_name, user.pw_gid, groups.data(), &count) < 0) {
    groups.resize(std::max(static_cast<size_t>(count), 2 * groups.size()));
    count = static_cast<int>(groups.size());
  }
  groups.resize(static_cast<size_t>(count));
  return groups;
}

}  // namespace

absl::StatusOr<gid_t> GroupId(std::string_view setting, const std::string& name) {
  std::vector<char> buffer(kBufferBytes);
  struct group entry {};
  struct group* found = nullptr;
  if (getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return absl::InvalidArgumentError(StrCat(setting, ": there is no group \"", name, "\" on this machine"));
  }
  return entry.gr_gid;
}

bool IsMember(uid_t user, gid_t group) {
  std::vector<char> buffer(kBufferBytes);
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return false;
  const std::vector<gid_t> groups = GroupsOf(entry);
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace kernix::server
