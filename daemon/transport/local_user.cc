// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/local_user.h"

#include <memory>
#include <utility>

#include "common/base/strings.h"
#include "daemon/transport/administrators.h"

namespace kernix::server {
namespace {

class UnixIdentity final : public Identity {
 public:
  UnixIdentity(uid_t uid, std::string admin_group)
      : Identity(UserId{uid}, StrCat(uid)), uid_(uid), admin_group_(std::move(admin_group)) {}

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
