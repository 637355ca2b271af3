// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_inputs.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>

#include "tests/support/client_support.h"

namespace kernix {
namespace {

using testing::ScratchFolder;

// Two folders; the second has a header, which is older than a load that begins now.
class LoadInputsTest : public ::testing::Test {
 protected:
  LoadInputsTest() {
    for (const char* folder : {"first/sub", "second/sub"}) EXPECT_TRUE(env_.CreateDirectories(tree_ / folder).ok());
    tree_.Write("second/sub/x.h", "1");
    AwaitClock();
  }

  // Waits until earlier changes are older than a load that begins afterwards.
  void AwaitClock() {
    const int64_t changed_ms = env_.Stat(tree_.Write("clock", ""))->ctime_ns / 1'000'000;
    while (env_.UnixMillis() <= changed_ms + 100) std::this_thread::yield();
  }

  // The inputs of a load that finds the header.
  LoadInputs Inputs() {
    LoadInputs inputs(env_);
    inputs.Add({tree_ / "second/sub/x.h"}, {tree_ / "missing", tree_ / "first/sub", tree_ / "second/sub"});
    return inputs;
  }

  Env& env_ = Env::Posix();
  ScratchFolder tree_;
};

TEST_F(LoadInputsTest, NothingChangesByItself) {
  const auto inputs = Inputs().Look();
  ASSERT_TRUE(inputs);
  EXPECT_TRUE(Unchanged(env_, *inputs));
}

TEST_F(LoadInputsTest, ChangesAreSeen) {
  const std::string header = tree_ / "second/sub/x.h";
  const std::vector<std::pair<const char*, std::function<void()>>> changes = {
      {"other content", [&] { tree_.Write("second/sub/x.h", "2"); }},
      {"hidden by a new one", [&] { tree_.Write("first/sub/x.h", ""); }},
      {"a folder appears", [&] { ASSERT_TRUE(env_.CreateDirectories(tree_ / "missing").ok()); }},
      {"removed", [&] { ASSERT_TRUE(env_.RemoveFile(header).ok()); }},
  };
  for (const auto& [what, change] : changes) {
    AwaitClock();
    const auto inputs = Inputs().Look();
    ASSERT_TRUE(inputs) << what;
    change();
    EXPECT_FALSE(Unchanged(env_, *inputs)) << what;
  }
}

TEST_F(LoadInputsTest, ARenamedFolderIsSeen) {
  const auto inputs = Inputs().Look();
  ASSERT_TRUE(inputs);
  ASSERT_TRUE(env_.Rename(tree_ / "second", tree_ / "elsewhere").ok());
  EXPECT_FALSE(Unchanged(env_, *inputs));
}

TEST_F(LoadInputsTest, AChangeDuringTheLoadIsNotTrusted) {
  const LoadInputs inputs = Inputs();
  tree_.Write("second/sub/x.h", "2");
  EXPECT_FALSE(inputs.Look());
}

TEST_F(LoadInputsTest, AHeaderThatIsGoneWhenTheLoadEndsIsNotTrusted) {
  const LoadInputs inputs = Inputs();
  ASSERT_TRUE(env_.Rename(tree_ / "second", tree_ / "elsewhere").ok());
  EXPECT_FALSE(inputs.Look());
}

}  // namespace
}  // namespace kernix
