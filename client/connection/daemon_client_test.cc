// SPDX-License-Identifier: Apache-2.0
#include "client/connection/daemon_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/base/strings.h"
#include "tests/support/client_support.h"
#include "tests/support/fault_env.h"
#include "tests/support/mem_env.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ScratchFolder;

constexpr uid_t kAlice = 70001;
constexpr uid_t kMallory = 70002;

class CheckArtifactTest : public ::testing::Test {
 protected:
  CheckArtifactTest() {
    env_.SetUid(0);
    EXPECT_TRUE(env_.CreateDirectories("/home", 0755).ok());
    env_.SetUid(kAlice);
    EXPECT_TRUE(env_.CreateDirectories("/home/alice/store", 0755).ok());
    EXPECT_TRUE(env_.WriteFile(kPath, "artifact", 0444).ok());
  }

  absl::StatusOr<std::string> Check(const std::string& path = kPath, uint64_t size = 8) {
    return CheckArtifact({.env = &env_, .uid = kAlice}, path, size);
  }

  std::string Refusal(const std::string& path = kPath) {
    const absl::Status status = Check(path).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    return std::string(status.message());
  }

  static constexpr char kPath[] = "/home/alice/store/a.so";
  MemEnv env_;
};

TEST_F(CheckArtifactTest, OnesOwnAndRootsAreFine) {
  EXPECT_EQ(*Check(), kPath);
  env_.SetOwner(kPath, 0);
  EXPECT_EQ(*Check(), kPath);
}

TEST_F(CheckArtifactTest, ThePathHasNoLinks) {
  ASSERT_TRUE(env_.CreateSymlink("/home/alice/store", "/home/alice/link").ok());
  EXPECT_EQ(*Check("/home/alice/link/a.so"), kPath);
}

TEST_F(CheckArtifactTest, AFileOfSomebodyElseIsRefusedByName) {
  env_.SetOwner(kPath, kMallory);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("/home/alice/store"), HasSubstr("uid 70002"), HasSubstr("uid 70001")));
}

TEST_F(CheckArtifactTest, AFileThatOthersMayWriteToIsRefused) {
  for (const mode_t mode : {0664, 0646}) {
    env_.SetMode(kPath, mode);
    EXPECT_THAT(Refusal(), HasSubstr("may write to it"));
  }
}

TEST_F(CheckArtifactTest, AFolderOnTheWayThatSomebodyElseCanExchangeIsRefused) {
  env_.SetOwner("/home/alice", kMallory);
  EXPECT_THAT(Refusal(), HasSubstr("/home/alice is on the way"));
  env_.SetOwner("/home/alice", kAlice);
  env_.SetMode("/home/alice", 0777);
  EXPECT_THAT(Refusal(), HasSubstr("chmod go-w /home/alice"));
}

TEST_F(CheckArtifactTest, WhatIsNoSuchArtifactIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Check(kPath, 9).status()));
  EXPECT_TRUE(absl::IsNotFound(Check("/home/alice/store/none.so").status()));
  EXPECT_TRUE(absl::IsNotFound(Check("").status()));
  ASSERT_TRUE(env_.CreateSymlink("a.so", "/home/alice/store/link.so").ok());
  EXPECT_FALSE(Check("/home/alice/store/link.so").ok()) << "its name is a link";
}

TEST_F(CheckArtifactTest, NoContentIsRead) {
  ScratchFolder folder;
  const std::string path = folder.Write("store/a.so", "artifact");
  ASSERT_EQ(chmod((folder / "store").c_str(), 0755), 0);
  FaultEnv env(Env::Posix());
  ASSERT_TRUE(CheckArtifact({.env = &env}, path, 8).ok());
  EXPECT_EQ(env.Calls(Operation::kOpenFile), 1);
  EXPECT_EQ(env.Calls(Operation::kReadFile), 0);
}

}  // namespace

}  // namespace kernix
