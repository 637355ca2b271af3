// SPDX-License-Identifier: Apache-2.0
//
// Two askers of one key who do not share a build.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "common/base/cancellation.h"
#include "common/base/error.h"
#include "tests/support/await.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

// One names a compiler of this machine, and one goes by the description of it, and so needs workers.
TEST(SharedBuildTest, ALoadThatHasCompilersDoesNotWaitForWorkers) {
  KERNIX_NEED_PROGRAM(compiler, "g++");
  TestBuilder t(TestBuilder::On::kLocalExecutor, {.builds_described = true});
  const v1::LoadRequest with_compiler = CppRequest(compiler);
  v1::LoadRequest bare = with_compiler;
  bare.clear_toolchain();
  t.DescribeTools(with_compiler);
  std::promise<void> asked, release;
  auto run = [&](const exec::Action& action, exec::ActionObserver* observer,
                 Cancellation* cancellation) -> absl::StatusOr<exec::ActionResult> {
    if (!action.needs_worker) {
      return exec::RunAction(t.env, {t.cache->scratch_directory()}, action, observer, cancellation);
    }
    asked.set_value();
    AwaitValue("the end of the workers", release.get_future());
    return MakeError(v1::ErrorDetail::RESOURCE, "no worker has a compiler");
  };
  t.RunOn(exec::MakePoolExecutor(t.env, run, 4, 0));
  auto first = std::async(std::launch::async, [&] { return t.Load(bare); });
  AwaitValue("a step for workers", asked.get_future());
  const auto built = t.Load(with_compiler);
  release.set_value();
  ASSERT_THAT(built, IsOk());
  EXPECT_FALSE(built->joined());
  EXPECT_THAT(first.get().status().message(), HasSubstr("no worker has a compiler"));
  const v1::GetCacheStatsResponse stats = t.Stats();
  EXPECT_EQ(stats.builds(), 1u);
  EXPECT_EQ(stats.failures(), 1u);
  EXPECT_EQ(stats.misses(), 2u);
}

}  // namespace
}  // namespace kernix::build
