// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/local_user.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "common/os/private_directory.h"

namespace kernix::server {

namespace {

constexpr Duration kBelieved{600'000};

// nullopt if the database fails: the other errors mean that it has no such user.
std::optional<bool> LookUp(uid_t uid) {
  std::vector<char> buffer(16384);
  struct passwd entry;
  struct passwd* found = nullptr;
  const int error = getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  constexpr int kFailures[] = {EIO, EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM, ERANGE};
  if (std::find(std::begin(kFailures), std::end(kFailures), error) != std::end(kFailures)) return std::nullopt;
  return found != nullptr;
}

}  // namespace

bool KnownUsers::Ask(uid_t uid) {
  const std::optional<bool> is_user = LookUp(uid);
  if (!is_user) return true;
  answers_.Put(uid, {*is_user, *is_user ? MonotonicTime::max() : env_.Now() + kBelieved});
  return *is_user;
}

std::optional<bool> KnownUsers::Recall(uid_t uid) {
  const std::optional<Answer> answer = answers_.Find(uid);
  return answer && env_.Now() < answer->until ? std::optional(answer->is_user) : std::nullopt;
}

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

bool IsAdministrator(uid_t user, const std::string& admin_group) {
  if (user == 0 || user == geteuid()) return true;
  if (admin_group.empty()) return false;
  const absl::StatusOr<gid_t> group = GroupId("admin_group", admin_group);
  return group.ok() && IsMember(user, *group);
}

namespace {

// Asks the user database, which may be another machine's.
std::string NameOf(uid_t uid) {
  const std::string name = LookUpUser(uid).name;
  return name.empty() ? StrCat(uid) : name;
}

class UnixIdentity final : public Identity {
 public:
  UnixIdentity(uid_t uid, std::string admin_group)
      : Identity(UserId{uid}, NameOf(uid)), uid_(uid), admin_group_(std::move(admin_group)) {}

  bool IsAdministrator() const override { return server::IsAdministrator(uid_, admin_group_); }

 private:
  const uid_t uid_;
  const std::string admin_group_;
};

}  // namespace

IdentityPtr LocalUser(uid_t uid, std::string admin_group) {
  return std::make_shared<UnixIdentity>(uid, std::move(admin_group));
}

// For a shared daemon, the socket's mode decides who may connect. A member's subordinate numbers are no more members;
// the first connection of a number asks the user database, where that makes nobody else wait.
absl::Status Callers::Admit(const Peer& peer) {
  const bool is_served = options_.shared ? !NeedsAccount(peer.uid) || known_users_.Recall(peer.uid).value_or(true)
                                         : IsAdministrator(peer.uid, options_.admin_group);
  if (is_served) return absl::OkStatus();
  if (!options_.shared) {
    return absl::PermissionDeniedError(StrCat("this kernixd serves uid ", geteuid(), " and root only"));
  }
  return absl::PermissionDeniedError(StrCat("this machine's user database does not have uid ", peer.uid,
                                            ": connect as a user, or set unknown_users in kernixd's config"));
}

IdentityPtr Callers::Identify(UserId user) {
  const uid_t uid = ToNumber(user);
  if (options_.shared && NeedsAccount(uid) && !known_users_.Ask(uid)) return nullptr;
  return LocalUser(uid, options_.admin_group);
}

// The service's own user may have none, in a container.
bool Callers::NeedsAccount(uid_t uid) const { return !options_.unknown_users && uid != 0 && uid != geteuid(); }

}  // namespace kernix::server
