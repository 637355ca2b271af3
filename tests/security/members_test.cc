// SPDX-License-Identifier: Apache-2.0
//
// A member's subordinate numbers: a user namespace has thousands of them, which all keep the member's group. If each
// were a user, the member would have the limits of thousands.
#include <string>

#include "common/base/strings.h"
#include "common/wire/quick_lookup.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kRow[] = "11 bounds per user";

class MembersTest : public SecurityTest {
 protected:
  // TheUsers().member is such a number: in the group, and in no user database.
  MembersTest() {
    unknown_users_ = false;
    Serve();
  }

  // Whether the daemon answers a lookup, which needs no gRPC.
  bool LookUpAs(uid_t user) {
    const UniqueFd connection = *ConnectAs(user, socket());
    const MonotonicTime deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const std::string request = LookupOf(CppKernel().request).SerializeAsString();
    (void)SendFrame(connection.get(), kLookupMagic, request, deadline);
    return ReceiveFrame(connection.get(), 1 << 20, deadline).ok();
  }
};

TEST_F(MembersTest, ANumberThatIsNoUsersIsNotServed) {
  Judge(kRow, "a subordinate number's first connection",
        Connect(TheUsers().member)->Info().ok() ? "it is served" : "");  // is closed; later ones are told why
  const auto subordinate = Connect(TheUsers().member);
  const auto info = subordinate->Info();
  EXPECT_THAT(std::string(info.status().message()), testing::HasSubstr("user database"));
  Judge(kRow, "a subordinate number", info.ok() ? "it is served" : "");
  const server::LoadOutcome load = Load(*subordinate, CppKernel());
  Judge(kRow, "a load of a subordinate number", load.result ? "it is served" : "");
  Judge(kRow, "a lookup of a subordinate number", LookUpAs(TheUsers().member) ? "it is answered" : "");
}

TEST_F(MembersTest, AMemberWithAnAccountIsServed) {
  const server::LoadOutcome load = Load(*Connect(TheUsers().account), CppKernel());
  JudgeTwin(kRow, "a member with an account", load.result ? "" : Answer(load));
  JudgeTwin(kRow, "a lookup of one", LookUpAs(TheUsers().account) ? "" : "no answer");
}

}  // namespace
}  // namespace kernix::security
