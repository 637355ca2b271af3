// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fault_env.h"

#include <gtest/gtest.h>

#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using testing::HasSubstr;

class FaultEnvTest : public testing::Test {
 protected:
  FaultEnvTest() {
    mem_.SetProgram("/bin/cc", [](const ProcessSpec&, Cancellation*) -> absl::StatusOr<ProcessResult> {
      return ProcessResult{.output = "compiled"};
    });
  }
  absl::StatusOr<ProcessResult> Compile() {
    return env_.RunProcess(
        {.argv = {"/bin/cc", "-c", "a.c"}}, [this](std::string_view text) { streamed_ += text; }, nullptr);
  }

  MemEnv mem_;
  FaultEnv env_{mem_};
  std::string streamed_;
};

TEST_F(FaultEnvTest, PassesEverythingOnByItself) {
  ASSERT_THAT(env_.CreateDirectories("/d", 0755), IsOk());
  ASSERT_THAT(env_.WriteFile("/d/a", "1", 0644), IsOk());
  ASSERT_THAT(env_.WriteFileDurably("/d/b", "2", 0600), IsOk());
  EXPECT_EQ(env_.ReadFile("/d/a").value(), "1");
  EXPECT_EQ(env_.Stat("/d/b")->mode, 0600u);
  EXPECT_EQ(env_.ListDirectory("/d")->size(), 2u);
  EXPECT_THAT(env_.Rename("/d/a", "/d/c"), IsOk());
  EXPECT_EQ(env_.RealPath("/d/c").value(), "/d/c");
  EXPECT_THAT(env_.RemoveFile("/d/c"), IsOk());
  EXPECT_THAT(env_.CreateTempDirectory("/d/t"), IsOk());
  EXPECT_THAT(env_.TryLockFile("/d/lock"), IsOk());
  EXPECT_THAT(env_.LockFile("/d/lock", env_.Now()), IsOk());
  EXPECT_THAT(env_.FreeBytes("/d"), IsOk());
  EXPECT_FALSE(env_.OnNetworkFileSystem("/d").value());
  EXPECT_THAT(env_.RemoveTree("/d"), IsOk());
  EXPECT_EQ(env_.Now(), mem_.Now());
  EXPECT_EQ(env_.UnixMillis(), mem_.UnixMillis());
  EXPECT_EQ(Compile()->output, "compiled");
  EXPECT_EQ(env_.Hits(), 0);
}

TEST_F(FaultEnvTest, HitsTheNthMatchingCallAlone) {
  env_.Inject(NoSpace(Operation::kWriteFile, "/a", 2));
  EXPECT_THAT(env_.WriteFile("/a", "1", 0644), IsOk());
  EXPECT_THAT(env_.WriteFile("/b", "1", 0644), IsOk());
  EXPECT_THAT(env_.WriteFileDurably("/a", "2", 0644), IsOk());
  EXPECT_EQ(env_.Hits(), 0);
  EXPECT_THAT(env_.WriteFile("/a", "3", 0644), HasError(absl::StatusCode::kResourceExhausted, HasSubstr("No space")));
  EXPECT_EQ(env_.Hits(), 1);
  EXPECT_EQ(env_.ReadFile("/a").value(), "2");
  EXPECT_THAT(env_.WriteFile("/a", "4", 0644), IsOk());
  EXPECT_EQ(env_.Calls(Operation::kWriteFile), 4);
  EXPECT_EQ(env_.Calls(Operation::kWriteFile, "/a"), 3);
}

TEST_F(FaultEnvTest, HitsAllCallsUntilCleared) {
  Fault fault = Forbidden(Operation::kReadFile, "");
  fault.times = 0;
  env_.Inject(fault);
  ASSERT_THAT(env_.WriteFile("/a", "1", 0644), IsOk());
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(env_.ReadFile("/a"), HasError(absl::StatusCode::kPermissionDenied, HasSubstr("")));
  env_.Clear();
  EXPECT_EQ(env_.ReadFile("/a").value(), "1");
}

TEST_F(FaultEnvTest, AFailedSyncLeavesTheOldContent) {
  ASSERT_THAT(env_.WriteFileDurably("/a", "old", 0644), IsOk());
  env_.Inject(FailedSync("/a"));
  EXPECT_THAT(env_.WriteFileDurably("/a", "new", 0644), HasError(absl::StatusCode::kInternal, HasSubstr("sync /a")));
  EXPECT_EQ(env_.ReadFile("/a").value(), "old");
}

TEST_F(FaultEnvTest, AFailedSyncAfterTheRenameLeavesTheNewContent) {
  ASSERT_THAT(env_.WriteFileDurably("/a", "old", 0644), IsOk());
  env_.Inject(FailedSync("/a", 1, /*renamed=*/true));
  EXPECT_THAT(env_.WriteFileDurably("/a", "new", 0644), HasError(absl::StatusCode::kInternal, HasSubstr("sync /a")));
  EXPECT_EQ(env_.ReadFile("/a").value(), "new");
}

TEST_F(FaultEnvTest, AChildFails) {
  env_.Inject(FailingChild("-c a.c", 1, "a.c:1: error"));
  const auto result = Compile();
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 1);
  EXPECT_EQ(result->output, "a.c:1: error");
  EXPECT_EQ(streamed_, "a.c:1: error");
  EXPECT_TRUE(mem_.Processes().empty());
  EXPECT_EQ(Compile()->exit_code, 0);
}

TEST_F(FaultEnvTest, AChildIsKilled) {
  env_.Inject(KilledChild("/bin/cc"));
  const auto result = Compile();
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->signal, 9);
  EXPECT_EQ(result->exit_code, 137);
}

TEST_F(FaultEnvTest, AProgramIsForbidden) {
  env_.Inject(Forbidden(Operation::kRunProcess, "/bin/cc"));
  EXPECT_THAT(Compile(), HasError(absl::StatusCode::kPermissionDenied, HasSubstr("/bin/cc")));
}

TEST_F(FaultEnvTest, ASlowCallStillTakesEffect) {
  const MonotonicTime start = env_.Now();
  env_.Inject(Slow(Operation::kWriteFileDurably, "/a", [this] { mem_.AdvanceClock(Duration(5000)); }));
  ASSERT_THAT(env_.WriteFileDurably("/a", "1", 0644), IsOk());
  EXPECT_EQ(env_.Now() - start, Duration(5000));
  EXPECT_EQ(env_.ReadFile("/a").value(), "1");
  EXPECT_EQ(env_.Hits(), 1);
}

TEST_F(FaultEnvTest, ACallCanBeSlowAndThenFail) {
  int waited = 0;
  env_.Inject(Slow(Operation::kRename, "/to", [&] { ++waited; }));
  env_.Inject(NoSpace(Operation::kRename, "/from"));
  ASSERT_THAT(env_.WriteFile("/from", "", 0644), IsOk());
  EXPECT_THAT(env_.Rename("/from", "/to"), HasError(absl::StatusCode::kResourceExhausted, HasSubstr("/from")));
  EXPECT_EQ(waited, 1);
  EXPECT_EQ(env_.Hits(), 1);
}

TEST_F(FaultEnvTest, FaultsReachTheOperatingSystemToo) {
  ScratchDirectory scratch;
  FaultEnv env(Env::Posix());
  env.Inject(NoSpace(Operation::kWriteFileDurably, scratch / "f"));
  EXPECT_FALSE(env.WriteFileDurably(scratch / "f", "x", 0644).ok());
  EXPECT_THAT(env.WriteFileDurably(scratch / "f", "x", 0644), IsOk());
}

}  // namespace
}  // namespace kernix
