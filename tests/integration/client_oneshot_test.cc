// SPDX-License-Identifier: Apache-2.0
//
// Loads where no daemon can have a run folder.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/error.h"
#include "tests/integration/client_world.h"

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ClientOneshotTest : public ClientWorld {
 protected:
  ClientOneshotTest() {
    // A file where the runtime directory should be: ours, but no use.
    WriteScript("kernix", "");
    options_.callbacks.warning = [this](std::string_view text) { warnings_.emplace_back(text); };
  }

  LoadOptions options_;
  std::vector<std::string> warnings_;
};

TEST_F(ClientOneshotTest, APrivateDaemonServesTheLoadWithAWarning) {
  const auto client = MakeClient();
  const auto module = LoadKernel(*client, 11, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("A private kernixd serves this load alone")));
  EXPECT_THAT(warnings_.front(), HasSubstr(Path("kernix")));
  EXPECT_THAT((*module)->path(), StartsWith(Path("store")));
  // The store is the usual one, so the next finds it there.
  const auto again = LoadKernel(*client, 11, options_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE((*again)->cache_hit());
}

TEST_F(ClientOneshotTest, WithAStoreThatCannotBeUsedItHasOneOfItsOwn) {
  WriteScript("store", "");  // a file
  const auto module = LoadKernel(*MakeClient(), 12, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("gone when this process ends")));
}

TEST_F(ClientOneshotTest, SoItDoesWhereChildrenLeaveNoExitCode) {
  WriteScript("store", "");
  EXPECT_EQ(ForkAndRun([this] {
              signal(SIGCHLD, SIG_IGN);
              return LoadKernel(*MakeClient(), 12, options_).ok() ? 0 : 1;
            }),
            0);
}

TEST_F(ClientOneshotTest, IsNotUsedWhereItIsNotWanted) {
  ClientOptions options;
  options.allow_oneshot = false;
  const auto module = LoadKernel(*MakeClient(options), 13, options_);
  EXPECT_THAT(std::string(module.status().message()), HasSubstr(Path("kernix")));
  EXPECT_THAT(warnings_, ElementsAre());
}

// A descriptor of ours that got the number of a standard stream would be replaced in the daemon by its own.
TEST_F(ClientOneshotTest, AProcessWithoutStandardStreamsHasOneToo) {
  EXPECT_EQ(ForkAndRun([this] {
              for (int fd = 0; fd < 4; ++fd) close(fd);
              return LoadKernel(*MakeClient(), 14).ok() ? 0 : 1;
            }),
            0);
}

TEST_F(ClientOneshotTest, OnlyLoadsUseIt) { EXPECT_FALSE(MakeClient()->Stats().ok()); }

}  // namespace
}  // namespace kernix
