// SPDX-License-Identifier: Apache-2.0
//
// Features of MemEnv beyond Env; env_test.cc tests the rest.
#include "tests/support/mem_env.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/support/await.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(MemEnvTest, TheClockMovesWhenToldTo) {
  MemEnv env;
  const MonotonicTime start = env.Now();
  const int64_t unix_start = env.UnixMillis();
  EXPECT_EQ(env.Now(), start);
  env.AdvanceClock(milliseconds(1500));
  EXPECT_EQ(env.Now() - start, milliseconds(1500));
  EXPECT_EQ(env.UnixMillis() - unix_start, 1500);
}

TEST(MemEnvTest, EachChangeHasATimeOfItsOwn) {
  MemEnv env;
  ASSERT_THAT(env.WriteFile("/f", "1", 0644), IsOk());
  const int64_t before = env.Stat("/f")->mtime_ns;
  ASSERT_THAT(env.WriteFile("/f", "2", 0644), IsOk());
  EXPECT_GT(env.Stat("/f")->mtime_ns, before);
}

TEST(MemEnvTest, AWaiterGetsTheLockWhenItIsReleased) {
  MemEnv env;
  auto held = env.TryLockFile("/lock");
  ASSERT_THAT(held, IsOk());
  auto waiter = std::async(std::launch::async, [&] { return env.LockFile("/lock", env.Now() + milliseconds(10)); });
  held->reset();
  EXPECT_THAT(waiter.get(), IsOk());
}

TEST(MemEnvTest, AWaiterGivesUpWhenTheClockPassesItsDeadline) {
  MemEnv env;
  auto held = env.TryLockFile("/lock");
  ASSERT_THAT(held, IsOk());
  const MonotonicTime deadline = env.Now() + milliseconds(10);
  auto waiter = std::async(std::launch::async, [&] { return env.LockFile("/lock", deadline); });
  env.AdvanceClock(milliseconds(10));
  EXPECT_THAT(waiter.get(), HasError(absl::StatusCode::kDeadlineExceeded, HasSubstr("/lock")));
}

TEST(MemEnvTest, ProgramsAreFunctions) {
  MemEnv env;
  env.SetProgram("/bin/cc", [&env](const ProcessSpec& spec, Cancellation*) -> absl::StatusOr<ProcessResult> {
    absl::Status status = env.WriteFile("/out.o", spec.argv[1], 0644);
    if (!status.ok()) return status;
    return ProcessResult{.exit_code = 3, .output = "warning"};
  });
  std::string streamed;
  const auto result = env.RunProcess(
      {.argv = {"/bin/cc", "a.c"}, .working_directory = "/w"}, [&](std::string_view text) { streamed += text; },
      nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(streamed, "warning");
  EXPECT_EQ(env.ReadFile("/out.o").value(), "a.c");
  ASSERT_EQ(env.Processes().size(), 1u);
  EXPECT_EQ(env.Processes()[0].working_directory, "/w");
}

TEST(MemEnvTest, ACancelledProgramIsCancelled) {
  MemEnv env;
  env.SetProgram("/bin/cc", [](const ProcessSpec&, Cancellation* cancellation) -> absl::StatusOr<ProcessResult> {
    std::promise<void> cancelled;
    const ScopedOnCancel on_cancel(cancellation, [&] { cancelled.set_value(); });
    AwaitValue("the cancellation", cancelled.get_future());
    return ProcessResult{};
  });
  Cancellation cancellation;
  auto run =
      std::async(std::launch::async, [&] { return env.RunProcess({.argv = {"/bin/cc"}}, nullptr, &cancellation); });
  cancellation.Cancel();
  EXPECT_THAT(AwaitValue("the end of the program", run), HasError(absl::StatusCode::kCancelled, HasSubstr("/bin/cc")));
}

TEST(MemEnvTest, SaysWhatItWasToldAboutTheDisk) {
  MemEnv env;
  env.SetFreeBytes(12);
  env.AddNetworkFileSystem("/net/home");
  env.SetUid(7);
  ASSERT_THAT(env.CreateDirectories("/net/home2", 0755), IsOk());
  EXPECT_EQ(env.FreeBytes("/").value(), 12u);
  EXPECT_TRUE(env.OnNetworkFileSystem("/net/home/u/x").value());
  EXPECT_FALSE(env.OnNetworkFileSystem("/net/home2").value());
  EXPECT_EQ(env.Stat("/net/home2")->uid, 7u);
  env.SetOwner("/net/home2", 8);
  env.SetMode("/net/home2", 0711);
  EXPECT_EQ(env.Stat("/net/home2")->uid, 8u);
  EXPECT_EQ(env.Stat("/net/home2")->mode, 0711u);
}

}  // namespace
}  // namespace kernix
