// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/local_user.h"

#include <map>
#include <memory>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/strings.h"
#include "common/os/user_entry.h"
#include "daemon/transport/administrators.h"

namespace kernix::server {
namespace {

// Asks the user database, which may be another machine's, once for each user.
std::string NameOf(uid_t uid) {
  static Mutex mutex;
  static std::map<uid_t, std::string> names;
  const MutexLock lock(mutex);
  const auto [name, is_new] = names.try_emplace(uid);
  if (is_new) name->second = LookUpUser(uid).name;
  if (name->second.empty()) name->second = StrCat(uid);
  return name->second;
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

}  // namespace kernix::server
