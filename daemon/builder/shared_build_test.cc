// SPDX-License-Identifier: Apache-2.0
//
// One build for two askers, each with its own label.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "common/base/cancellation.h"
#include "tests/support/await.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

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

}  // namespace
}  // namespace kernix::build
