// SPDX-License-Identifier: Apache-2.0
#include "common/os/private_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/mem_env.h"
#include "tests/support/need_right.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kAlice = 70001;
constexpr uid_t kMallory = 70002;

// As usual, root owns "/" and "/tmp". Alice owns everything that is created later.
class GuardedPathTest : public testing::Test {
 protected:
  GuardedPathTest() {
    env_.SetUid(0);
    EXPECT_THAT(env_.CreateDirectories("/tmp", 01777), IsOk());
    EXPECT_THAT(env_.CreateDirectories("/home", 0755), IsOk());
    env_.SetUid(kAlice);
    EXPECT_THAT(env_.CreateDirectories("/home/alice/store", 0755), IsOk());
  }

  std::string RealPath(const std::string& path, const std::vector<uid_t>& owners = {kAlice}) {
    const absl::StatusOr<std::string> real = GuardedRealPath(env_, path, owners);
    return real.ok() ? *real : absl::IsPermissionDenied(real.status()) ? "refused" : real.status().ToString();
  }

  std::string Refusal(const std::string& path) {
    const absl::Status status = GuardedRealPath(env_, path, {kAlice}).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    return std::string(status.message());
  }

  void GiveAway(const std::string& path, uid_t owner = kMallory) { env_.SetOwner(path, owner); }

  MemEnv env_;
};

TEST_F(GuardedPathTest, OnesOwnFolderBelowRootsIsFine) {
  EXPECT_EQ(RealPath("/home/alice/store"), "/home/alice/store");
  EXPECT_EQ(RealPath("/home/./alice//store/../store"), "/home/alice/store");
  GiveAway("/home/alice", 0);
  EXPECT_EQ(RealPath("/home/alice/store"), "/home/alice/store");
}

TEST_F(GuardedPathTest, AFolderOnTheWayThatIsSomebodyElsesIsRefusedByName) {
  GiveAway("/home/alice");
  EXPECT_THAT(Refusal("/home/alice/store"),
              AllOf(HasSubstr("/home/alice is on the way"), HasSubstr("uid 70002"), HasSubstr("uid 70001")));
  EXPECT_EQ(RealPath("/home/alice/store", {kAlice, kMallory}), "/home/alice/store");
}

TEST_F(GuardedPathTest, AFolderOnTheWayThatOthersMayWriteToIsRefusedWithTheRemedy) {
  for (const mode_t mode : {0777, 0757, 0775}) {
    env_.SetMode("/home/alice", mode);
    EXPECT_THAT(Refusal("/home/alice/store"), HasSubstr("chmod go-w /home/alice")) << mode;
  }
  env_.SetMode("/home/alice", 0755);
  EXPECT_EQ(RealPath("/home/alice/store"), "/home/alice/store");
}

TEST_F(GuardedPathTest, AGroupThatIsTheOwnersAloneMayWrite) {
  env_.SetMode("/home/alice", 0775);
  env_.SetPrivateGroup(kAlice, kAlice);
  EXPECT_EQ(RealPath("/home/alice/store"), "/home/alice/store");
  env_.SetGroup("/home/alice", 100);
  EXPECT_EQ(RealPath("/home/alice/store"), "refused");
  env_.SetGroup("/home/alice", kAlice);
  env_.SetAccessList("/home/alice");
  EXPECT_THAT(Refusal("/home/alice/store"), HasSubstr("access list"));
}

TEST_F(GuardedPathTest, InAStickyFolderWhatFollowsHasToBeOurs) {
  ASSERT_THAT(env_.CreateDirectories("/tmp/store", 0755), IsOk());
  EXPECT_EQ(RealPath("/tmp/store"), "/tmp/store");
  GiveAway("/tmp/store");
  EXPECT_THAT(Refusal("/tmp/store"), HasSubstr("it belongs to uid 70002"));
  GiveAway("/tmp/store", 0);
  EXPECT_EQ(RealPath("/tmp/store"), "/tmp/store");
}

TEST_F(GuardedPathTest, AStickyFolderOfSomebodyElseIsHisToExchange) {
  ASSERT_THAT(env_.CreateDirectories("/tmp/his/store", 01777), IsOk());
  GiveAway("/tmp/his");
  EXPECT_EQ(RealPath("/tmp/his/store"), "refused");
}

TEST_F(GuardedPathTest, LinksAndTheFoldersThatTheyLieInCount) {
  ASSERT_THAT(env_.CreateDirectories("/home/alice/links", 0755), IsOk());
  ASSERT_THAT(env_.CreateSymlink("../store", "/home/alice/links/relative"), IsOk());
  ASSERT_THAT(env_.CreateSymlink("/home/alice/links/relative", "/tmp/link"), IsOk());
  EXPECT_EQ(RealPath("/tmp/link"), "/home/alice/store");
  GiveAway("/home/alice/links");
  EXPECT_EQ(RealPath("/tmp/link"), "refused") << "its owner can point the link elsewhere";
  GiveAway("/home/alice/links", kAlice);
  ASSERT_THAT(env_.RemoveFile("/tmp/link"), IsOk());
  env_.SetUid(kMallory);
  ASSERT_THAT(env_.CreateSymlink("/home/alice/store", "/tmp/link"), IsOk());
  EXPECT_EQ(RealPath("/tmp/link"), "refused") << "a stranger's link in a sticky folder";
}

TEST_F(GuardedPathTest, LinksInACircleEnd) {
  ASSERT_THAT(env_.CreateSymlink("b", "/home/alice/a"), IsOk());
  ASSERT_THAT(env_.CreateSymlink("a", "/home/alice/b"), IsOk());
  EXPECT_TRUE(absl::IsNotFound(GuardedRealPath(env_, "/home/alice/a", {kAlice}).status()));
}

TEST_F(GuardedPathTest, AFileAtTheEndMayHaveAnyOwnerOutsideOfStickyFolders) {
  ASSERT_THAT(env_.WriteFile("/home/alice/store/f", "x", 0666), IsOk());
  EXPECT_EQ(RealPath("/home/alice/store/f"), "/home/alice/store/f");
  ASSERT_THAT(env_.WriteFile("/tmp/f", "x", 0644), IsOk());
  GiveAway("/tmp/f");
  EXPECT_EQ(RealPath("/tmp/f"), "refused");
}

TEST_F(GuardedPathTest, WhatIsNotThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(GuardedRealPath(env_, "/home/alice/none/at/all", {kAlice}).status()));
}

// The contents of /proc about the user namespace, as in a container without the host's root.
class OtherRootTest : public GuardedPathTest {
 protected:
  OtherRootTest() {
    for (const char* folder : {"/", "/home", "/tmp"}) GiveAway(folder, kOverflow);
  }
  static constexpr uid_t kOverflow = 65534;
};

TEST_F(OtherRootTest, WhoOwnsTheRootFolderIsTakenForRoot) {
  EXPECT_EQ(RealPath("/home/alice/store"), "/home/alice/store");
  env_.SetMode("/home", 0777);
  EXPECT_EQ(RealPath("/home/alice/store"), "refused");
}

TEST_F(OtherRootTest, NobodyElseIs) {
  GiveAway("/home", kMallory);
  EXPECT_EQ(RealPath("/home/alice/store"), "refused");
  GiveAway("/home", kOverflow);
  GiveAway("/", 0);
  EXPECT_EQ(RealPath("/home/alice/store"), "refused");
}

TEST_F(OtherRootTest, HeOwnsNothingInAStickyFolder) {
  ASSERT_THAT(env_.CreateDirectories("/tmp/store", 0755), IsOk());
  GiveAway("/tmp/store", kOverflow);
  EXPECT_EQ(RealPath("/tmp/store"), "refused");
  GiveAway("/tmp/store", kAlice);
  EXPECT_EQ(RealPath("/tmp/store"), "/tmp/store");
}

TEST(GuardedPathOnDiskTest, AScratchFolderOfOursIsFineAndAGivenAwayParentIsNot) {
  const ScratchDirectory scratch;
  const std::string store = scratch / "parent/store";
  ASSERT_THAT(Env::Posix().CreateDirectories(store, 0700), IsOk());
  EXPECT_EQ(GuardedRealPath(Env::Posix(), store, {geteuid()}).value(), Env::Posix().RealPath(store).value());
  ASSERT_EQ(chmod((scratch / "parent").c_str(), 0777), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(GuardedRealPath(Env::Posix(), store, {geteuid()}).status()));
  ASSERT_EQ(chmod((scratch / "parent").c_str(), 0755), 0);
  KERNIX_NEED_ROOT("giving a folder away takes root");
  ASSERT_EQ(chown((scratch / "parent").c_str(), kMallory, kMallory), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(GuardedRealPath(Env::Posix(), store, {geteuid()}).status()));
}

}  // namespace

}  // namespace kernix
