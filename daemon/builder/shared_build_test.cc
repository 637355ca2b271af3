// SPDX-License-Identifier: Apache-2.0
//
// One build for two askers, each with its own label.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "common/base/cancellation.h"
#include "common/base/error.h"
#include "tests/support/await.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

v1::LoadRequest Named(v1::LoadRequest request, const std::string& name) {
  request.set_name(name);
  return request;
}

// Blocks those who register for it: a cancellation whose first callback does not end.
class StuckCancellation {
 public:
  StuckCancellation() {
    cancellation_->OnCancel([this] {
      stuck_.set_value();
      AwaitValue("the release of the cancellation", release_.get_future());
    });
    canceller_ = std::thread([this] { cancellation_->Cancel(); });
    AwaitValue("a cancellation that is stuck", stuck_.get_future());
  }
  ~StuckCancellation() { canceller_.join(); }

  void Release() { release_.set_value(); }
  const CancellationPtr& get() const { return cancellation_; }

 private:
  const CancellationPtr cancellation_ = std::make_shared<Cancellation>();
  std::promise<void> stuck_, release_;
  std::thread canceller_;
};

TEST(SharedBuildTest, WhoAskedFirstIsNamedThoughTheSecondStartsTheBuild) {
  KERNIX_NEED_PROGRAM(compiler, "g++");
  TestBuilder t(TestBuilder::On::kInlineExecutor, {}, TestBuilder::Tools::kOwn);
  ASSERT_THAT(t.Load(CppRequest(compiler, 2)), IsOk());  // from here on, the tools are known
  StuckCancellation stuck;
  const int calls = t.env.Calls(Operation::kStat, "");
  auto first = std::async(std::launch::async, [&] {
    RecordingObserver observer;
    return t.builder->Load(Named(CppRequest(compiler), "first"), UserId{1000}, observer, stuck.get());
  });
  Await("the second load", [&] { return t.env.Calls(Operation::kStat, "") != calls; });
  EXPECT_THAT(t.Load(Named(CppRequest(compiler), "second")), IsOk());
  stuck.Release();
  EXPECT_THAT(first.get(), IsOk()) << "it was there when the cancellation came";
  EXPECT_EQ(t.Stats().builds, 2u);
  EXPECT_EQ(t.cache->Purge({.name = "first"})->entries, 1u);
  EXPECT_EQ(t.cache->Purge({.name = "second"})->entries, 1u);
}

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
  t.RunOn(exec::MakePoolExecutor(run, 4, 0));
  auto first = std::async(std::launch::async, [&] { return t.Load(bare); });
  AwaitValue("a step for workers", asked.get_future());
  const auto built = t.Load(with_compiler);
  release.set_value();
  ASSERT_THAT(built, IsOk());
  EXPECT_FALSE(built->joined());
  EXPECT_THAT(first.get().status().message(), HasSubstr("no worker has a compiler"));
  const cache::CacheStats stats = t.Stats();
  EXPECT_EQ(stats.builds, 1u);
  EXPECT_EQ(stats.failures, 1u);
  EXPECT_EQ(stats.misses, 2u);
}

}  // namespace
}  // namespace kernix::build
