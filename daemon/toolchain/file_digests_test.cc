// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/file_digests.h"

#include <gtest/gtest.h>

#include "daemon/base/fault_env.h"
#include "daemon/base/mem_env.h"

namespace kernix::toolchain {
namespace {

class FileDigestsTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) { ASSERT_TRUE(mem_.WriteFile("/f", text, 0644).ok()); }
  int Reads() const { return env_.Calls(Operation::kReadFile); }

  MemEnv mem_;
  FaultEnv env_{mem_};
  FileDigests digests_{env_};
};

TEST_F(FileDigestsTest, ReadsAFileOnce) {
  Write("one");
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf("one"));
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf("one"));
  EXPECT_EQ(Reads(), 1);
}

TEST_F(FileDigestsTest, ReadsAgainWhatHasChanged) {
  Write("one");
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf("one"));
  Write("two");  // as long as before
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf("two"));
  EXPECT_EQ(Reads(), 2);
}

TEST_F(FileDigestsTest, WhatChangesWhileItIsReadIsNotRemembered) {
  Write("one");
  Fault change{.operation = Operation::kReadFile, .match = "/f"};
  change.before = [&] { Write("two"); };
  env_.Inject(change);
  ASSERT_TRUE(digests_.Get("/f").ok());
  ASSERT_TRUE(digests_.Get("/f").ok());
  EXPECT_EQ(Reads(), 2);
}

TEST_F(FileDigestsTest, AMissingFileIsAnErrorUntilItIsThere) {
  EXPECT_EQ(digests_.Get("/f").status().code(), absl::StatusCode::kNotFound);
  Write("one");
  EXPECT_TRUE(digests_.Get("/f").ok());
}

}  // namespace
}  // namespace kernix::toolchain
