// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/tool_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix::toolchain {
namespace {

TEST(SideBySide, RunsEachTaskOnce) {
  for (const size_t count : {0, 1, 2, 100}) {
    std::vector<std::atomic<int>> runs(count);
    std::vector<std::function<void()>> tasks;
    for (std::atomic<int>& run : runs) tasks.emplace_back([&run] { ++run; });
    RunSideBySide(tasks);
    for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
  }
}

TEST(SideBySide, TwoTasksMayWaitForEachOther) {
  std::promise<void> one, other;
  RunSideBySide({[&] {
                   one.set_value();
                   other.get_future().wait();
                 },
                 [&] {
                   one.get_future().wait();
                   other.set_value();
                 }});
}

TEST(SideBySide, ThrowsWhatATaskHasThrownAfterAllHaveRun) {
  std::atomic<int> runs = 0;
  std::vector<std::function<void()>> tasks(20, [&] { ++runs; });
  tasks[3] = [] { throw std::length_error("too long"); };
  EXPECT_THROW(RunSideBySide(tasks), std::length_error);
  EXPECT_EQ(runs, 19);
}

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(SplitCommandTest, QuotesHoldSpacesTogether) {
  EXPECT_THAT(SplitCommand(R"( a  "-Ib c"   "-isystem" "d"e "" )"), ElementsAre("a", "-Ib c", "-isystem", "de", ""));
  EXPECT_THAT(SplitCommand("  "), IsEmpty());
}

TEST(LineAfterTest, FindsTheFirstLineWithThePrefix) {
  EXPECT_EQ(LineAfter("x\n#$ TOP=/a\n#$ TOP=/b\n", "#$ TOP="), "/a");
  EXPECT_EQ(LineAfter("x#$ TOP=/a\n", "#$ TOP="), std::nullopt);
}

TEST(ToolEnvironmentTest, HoldsTheToolsFolderOnce) {
  EXPECT_EQ(ToolEnvironment("/opt/gcc/bin/g++").at("PATH"), "/opt/gcc/bin:/usr/bin:/bin");
  EXPECT_EQ(ToolEnvironment("/usr/bin/g++").at("PATH"), "/usr/bin:/bin");
  EXPECT_EQ(ToolEnvironment("/usr/bin/g++").at("LC_ALL"), "C");
}

TEST(FindFileTest, TakesTheFirstFolderThatHasIt) {
  MemEnv env;
  for (const char* folder : {"/a", "/b", "/c", "/a/x"}) ASSERT_TRUE(env.CreateDirectories(folder, 0755).ok());
  ASSERT_TRUE(env.WriteFile("/b/x", "", 0644).ok());
  ASSERT_TRUE(env.WriteFile("/c/x", "", 0644).ok());
  EXPECT_EQ(FindFile(env, {"/none", "/a", "/c/../b", "/c"}, "x"), "/b/x");  // /a/x is a folder
  EXPECT_EQ(FindFile(env, {"/a"}, "x"), std::nullopt);
}

TEST(ExistingFoldersTest, ResolvesLinksAndDropsDoubles) {
  MemEnv env;
  ASSERT_TRUE(env.CreateDirectories("/real/lib", 0755).ok());
  ASSERT_TRUE(env.WriteFile("/file", "", 0644).ok());
  ASSERT_TRUE(env.CreateSymlink("/real/lib", "/alias").ok());
  EXPECT_THAT(ExistingFolders(env, {"/alias", "/none", "/file", "/real/lib"}), ElementsAre("/real/lib"));
}

TEST(AskToolTest, AFailureTellsWhatTheToolSaid) {
  MemEnv env;
  env.SetProgram("/bin/tool", [](const ProcessSpec&, Cancellation*) {
    return absl::StatusOr<ProcessResult>(ProcessResult{.exit_code = 1, .output = "no license"});
  });
  const auto answer = AskTool(env, {"/bin/tool", "--version"});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(KindOf(answer.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("no license"));
  EXPECT_EQ(KindOf(AskTool(env, {"/bin/none"}).status()), v1::ErrorDetail::TOOLCHAIN);
}

TEST(AskToolTest, AScriptMayLackItsInterpreter) {
  ScratchDirectory scratch;
  const std::string tool = scratch / "tool";
  const auto message = [&] { return std::string(AskTool(Env::Posix(), {tool}).status().message()); };
  EXPECT_EQ(message(), StrCat("cannot run ", tool, ": No such file or directory"));
  for (const char* text : {"", "exec g++", "#!/none/sh\n", "#!/bin/sh\r\n"}) {
    ASSERT_TRUE(Env::Posix().WriteFile(tool, text, 0755).ok());
    EXPECT_THAT(message(), AllOf(StartsWith(StrCat("cannot run ", tool, ": ")), HasSubstr("#!/bin/sh"))) << text;
  }
}

}  // namespace

}  // namespace kernix::toolchain
