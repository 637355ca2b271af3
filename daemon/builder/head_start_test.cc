// SPDX-License-Identifier: Apache-2.0
//
// With a real compiler.
#include "daemon/builder/head_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

#include "common/base/error.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

// Counts compiles of the handlers' part.
class CountingExecutor : public exec::Executor {
 public:
  explicit CountingExecutor(exec::Executor& executor) : executor_(executor) {}

  void Submit(exec::Action action, UserId user, exec::ActionObserver* observer, CancellationPtr cancellation,
              exec::ActionDone done) override {
    const bool is_first = action.step == "handler" && ++handlers == 1;
    if (is_first) before_first();
    executor_.Submit(std::move(action), user, observer, std::move(cancellation),
                     [this, is_first, done](absl::StatusOr<exec::ActionResult> result) {
                       if (is_first) after_first();
                       done(std::move(result));
                     });
  }
  exec::ExecutorLoad load() const override { return executor_.load(); }

  std::atomic<int> handlers = 0;
  std::function<void()> before_first = [] {};
  std::function<void()> after_first = [] {};

 private:
  exec::Executor& executor_;
};

class HeadStartTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
  }

  absl::StatusOr<v1::LoadResult> Load(const v1::LoadRequest& request) {
    RecordingObserver observer;
    return builder_.Load(request, UserId{1000}, observer, nullptr);
  }

  std::string compiler_;
  TestBuilder tools_{TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn};
  CountingExecutor executor_{*tools_.executor};
  Builder builder_{tools_.env, {}, tools_.toolchains(), executor_, *tools_.cache};
};

TEST_F(HeadStartTest, TheFirstLoadCompilesWhatItsCompilerIsIdentifiedFor) {
  executor_.before_first = [&] { EXPECT_TRUE(tools_.toolchains().Used().empty()) << "it is identified"; };
  EXPECT_THAT(Load(CppRequest(compiler_, 1)), IsOk());
  EXPECT_EQ(executor_.handlers, 1);
  EXPECT_THAT(Load(CppRequest(compiler_, 2)), IsOk());
  EXPECT_EQ(executor_.handlers, 1);
}

TEST_F(HeadStartTest, NothingIsCompiledAheadForAKnownCompiler) {
  ASSERT_TRUE(tools_.toolchains().Resolve(CppRequest(compiler_).toolchain(), v1::LANGUAGE_CPP).ok());
  executor_.before_first = [&] { EXPECT_FALSE(tools_.toolchains().Used().empty()); };
  EXPECT_THAT(Load(CppRequest(compiler_)), IsOk());
  EXPECT_EQ(executor_.handlers, 1);
}

TEST_F(HeadStartTest, ALoadThatNeedsOtherHandlersCompilesThem) {
  v1::LoadRequest request = CppRequest(compiler_, 1);
  request.mutable_options()->add_compile_flags("-fstack-protector-all");
  EXPECT_THAT(Load(request), IsOk());
  EXPECT_EQ(executor_.handlers, 2);
  EXPECT_THAT(Load(CppRequest(compiler_, 2)), IsOk());
  EXPECT_EQ(executor_.handlers, 2) << "those that were compiled ahead serve the next load";
}

TEST_F(HeadStartTest, WhatAnotherCompilerMayHaveMadeIsDropped) {
  executor_.after_first = [&] { tools_.env.PretendChanged(compiler_); };
  EXPECT_EQ(Load(CppRequest(compiler_)).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(executor_.handlers, 2);
  EXPECT_THAT(Load(CppRequest(compiler_)), IsOk());
  EXPECT_EQ(executor_.handlers, 3) << "ahead, for the compiler that is there now";
}

TEST_F(HeadStartTest, AHeadStartThatFailsCostsNoLoad) {
  executor_.before_first = [] { throw std::bad_alloc(); };
  EXPECT_THAT(Load(CppRequest(compiler_)), IsOk());
  EXPECT_EQ(executor_.handlers, 2);
}

}  // namespace
}  // namespace kernix::build
