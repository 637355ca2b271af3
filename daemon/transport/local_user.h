// SPDX-License-Identifier: Apache-2.0
//
// The users of this machine: their identity, their groups in the machine's user database, who may administer the
// daemon, and who may connect to it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "common/base/lru.h"
#include "common/os/env.h"
#include "common/os/unix_socket.h"

namespace kernix::server {

// Which numbers are users of the user database. A process may have others, such as the thousands of subordinate ones
// that a user namespace gives a member. Thread-safe.
class KnownUsers {
 public:
  // `env`, the clock, must outlive it.
  explicit KnownUsers(Env& env) : env_(env) {}

  // Asks the database, which may take long, and remembers a user, and for ten minutes that there is none. If the
  // database fails, the number counts as a user's this time.
  bool Ask(uid_t uid);

  // What Ask() has said; nullopt: ask.
  std::optional<bool> Recall(uid_t uid);

 private:
  struct Answer {
    bool is_user;
    MonotonicTime until;  // to believe it
  };

  Env& env_;
  SharedLru<uid_t, Answer> answers_{200'000};
};

// Queries the machine's user database for the current groups.

// The group of that name. kInvalidArgument, naming `setting`, if there is none.
absl::StatusOr<gid_t> GroupId(std::string_view setting, const std::string& name);

// Whether `group` is the first group of `user`, or lists the user as a member. False for a user who is not in the
// database: the groups that a process claims do not count.
bool IsMember(uid_t user, gid_t group);

// Decides who may administer the daemon.

// True for root, the daemon's own user, and present members of `admin_group` (empty: no group).
bool IsAdministrator(uid_t user, const std::string& admin_group);

// Asks the user database for the name, which may be another machine's. `admin_group`: see IsAdministrator().
IdentityPtr LocalUser(uid_t uid, std::string admin_group);

// Decides who may connect. Thread-safe.
class Callers {
 public:
  struct Options {
    bool shared = false;         // else only those whom IsAdministrator() names are served
    bool unknown_users = false;  // a shared daemon serves numbers that the user database does not have, too
    std::string admin_group;
  };

  // `env`, the clock, must outlive it.
  Callers(Env& env, Options options) : options_(std::move(options)), known_users_(env) {}
  virtual ~Callers() = default;

  // kPermissionDenied if the daemon does not serve `peer`. Answers at once, so a number that was never seen may
  // connect.
  absl::Status Admit(const Peer& peer);

  // Who that is; null: nobody to serve. May take long, because the user database may be another machine's.
  virtual IdentityPtr Identify(UserId user);

 private:
  bool NeedsAccount(uid_t uid) const;

  const Options options_;
  KnownUsers known_users_;
};

}  // namespace kernix::server
