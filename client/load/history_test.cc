// SPDX-License-Identifier: Apache-2.0
#include "client/load/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "common/base/strings.h"
#include "tests/support/client_support.h"
#include "tests/support/fault_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ScratchFolder;
using ::testing::SizeIs;
using testing::Variables;

constexpr char kProgram[] = "/home/ada/train.py";

// A clock that a test sets.
class ClockEnv : public FaultEnv {
 public:
  ClockEnv() : FaultEnv(Env::Posix()) {}
  int64_t UnixMillis() override { return now_s * 1000; }
  int64_t now_s = 1'700'000'000;
};

class HistoryTest : public ::testing::Test {
 protected:
  PreparedLoad Prepare(const std::string& name, const std::string& source = "void f() {}\n") {
    const GetEnv get_env = Variables({{"CXX", testing::HostCompiler()}});
    LoadOptions options;
    options.functions = {{Function{"f", {}}}};
    const LoadSurroundings surroundings{
        .env = Env::Posix(), .get_env = get_env, .site_packages = {}, .header_folder = nullptr};
    absl::StatusOr<PreparedLoad> load =
        PrepareLoad(surroundings, v1::LANGUAGE_CPP, name, {{.text = source, .label = "", .path = ""}}, options);
    EXPECT_TRUE(load.ok()) << load.status();
    return *std::move(load);
  }

  History Of(const std::string& program, HistoryBounds bounds = {}) { return {env_, histories_, program, bounds}; }

  // A run of the program that loads these names, each with the key "key".
  bool RunThrough(History& history, const std::vector<std::string>& names, const std::string& key = "key") {
    env_.now_s += 7200;
    ProgramRun run(env_);
    for (const std::string& name : names) EXPECT_THAT(history.Note(run, Prepare(name), key), IsOk());
    return !run.full;
  }

  static std::vector<std::string> Names(const Recording& recording) {
    std::vector<std::string> names;
    for (const v1::RecordedLoad& load : recording.loads) names.push_back(load.request().name());
    return names;
  }

  // The names of the files of the only program, with this ending.
  std::vector<std::string> Files(std::string_view ending) {
    const std::string folder = Folder();
    std::vector<std::string> files = env_.ListDirectory(folder).value();
    std::erase_if(files, [&](const std::string& name) { return !name.ends_with(ending); });
    for (std::string& file : files) file = JoinPath(folder, file);
    return files;
  }

  std::string Folder() { return JoinPath(histories_, env_.ListDirectory(histories_).value().at(0)); }

  ClockEnv env_;
  ScratchFolder scratch_;
  const std::string histories_ = scratch_ / "history";
};

TEST_F(HistoryTest, TheLastRunComesFirstInItsOrder) {
  History history = Of(kProgram);
  EXPECT_TRUE(RunThrough(history, {"z", "a", "old"}));
  EXPECT_TRUE(RunThrough(history, {"b", "z", "a"}));
  EXPECT_THAT(Names(history.Read()), ElementsAre("b", "z", "a", "old"));
}

TEST_F(HistoryTest, AKnownLoadCostsOneCall) {
  History history = Of(kProgram);
  RunThrough(history, {"a"});
  const int before = env_.Calls(Operation::kStat);
  ProgramRun run(env_);
  EXPECT_THAT(history.Note(run, Prepare("a"), "key"), IsOk());
  EXPECT_EQ(env_.Calls(Operation::kStat), before + 1);
  EXPECT_EQ(env_.Calls(Operation::kSetModificationTime), 1) << "that of the first run";
}

TEST_F(HistoryTest, ANewVersionReplacesThatOfEarlierRuns) {
  History history = Of(kProgram);
  RunThrough(history, {"a", "b"}, "old");
  RunThrough(history, {"a"}, "new");
  const Recording recording = history.Read();
  EXPECT_THAT(Names(recording), ElementsAre("a", "b"));
  EXPECT_EQ(recording.loads[0].key(), "new");
}

TEST_F(HistoryTest, VersionsOfOneRunStaySideBySide) {
  History history = Of(kProgram);
  ProgramRun run(env_);
  for (const char* key : {"1", "2"}) EXPECT_THAT(history.Note(run, Prepare("a"), key), IsOk());
  EXPECT_THAT(history.Read().loads, SizeIs(2));
}

TEST_F(HistoryTest, WhatNoRunHasUsedForLongIsForgotten) {
  History history = Of(kProgram);
  RunThrough(history, {"a", "b"});
  env_.now_s += std::chrono::seconds(kHistoryAge).count();
  RunThrough(history, {"b"});
  EXPECT_THAT(Names(history.Read()), ElementsAre("b"));
  EXPECT_THAT(Files(".load"), SizeIs(1));
}

TEST_F(HistoryTest, OnlyALoadOfAKnownNameForetellsOthers) {
  History history = Of(kProgram);
  EXPECT_FALSE(history.KnowsOthersBeside("a")) << "nothing is known";
  RunThrough(history, {"a"});
  EXPECT_FALSE(history.KnowsOthersBeside("a")) << "nothing else is known";
  RunThrough(history, {"b"});
  EXPECT_TRUE(history.KnowsOthersBeside("a"));
  EXPECT_FALSE(history.KnowsOthersBeside("new"));
  EXPECT_FALSE(Of("/another.py").KnowsOthersBeside("a"));
}

TEST_F(HistoryTest, WhatIsNotWholeIsLeftOutAndNotedAgain) {
  History history = Of(kProgram);
  ProgramRun run(env_);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_THAT(history.Note(run, Prepare(name, StrCat("void f() { /*", name, "*/ }\n")), "key"), IsOk());
  }
  for (const std::string& path : Files(".text")) {
    if (env_.ReadFile(path)->find("/*a*/") == std::string::npos) continue;
    EXPECT_THAT(env_.WriteFile(path, "another text", 0600), IsOk());
  }
  EXPECT_THAT(Names(history.Read()), ElementsAre("b", "c"));
  EXPECT_THAT(env_.WriteFile(Files(".load")[0], "", 0600), IsOk());
  EXPECT_THAT(env_.WriteFile(JoinPath(Folder(), "x.load"), "no load", 0600), IsOk());
  EXPECT_THAT(history.Read().loads, SizeIs(1));
  EXPECT_THAT(Files(".load"), SizeIs(1));
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_THAT(history.Note(run, Prepare(name, StrCat("void f() { /*", name, "*/ }\n")), "key"), IsOk());
  }
  EXPECT_THAT(history.Read().loads, SizeIs(3));
}

TEST_F(HistoryTest, AFullOneForgetsWhatTheRunHasNotUsed) {
  History history = Of(kProgram, {.loads = 4});
  EXPECT_TRUE(RunThrough(history, {"a", "b"}));
  EXPECT_TRUE(RunThrough(history, {"c", "d"}));
  EXPECT_THAT(Names(history.Read()), SizeIs(4));
  EXPECT_TRUE(RunThrough(history, {"e", "f"}));
  EXPECT_THAT(Names(history.Read()), ElementsAre("e", "f"));
}

TEST_F(HistoryTest, OfARunWithTooManyLoadsTheFirstOnesAreNotedOnce) {
  History history = Of(kProgram, {.loads = 4});
  const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f"};
  for (int run = 0; run < 2; ++run) {
    EXPECT_FALSE(RunThrough(history, names));
    EXPECT_THAT(Names(history.Read()), ElementsAre("a", "b", "c", "d"));
  }
}

TEST_F(HistoryTest, BytesAreBoundedAndTextsGoWithTheirLoads) {
  History history = Of(kProgram, {.bytes = 14'000});
  for (const char letter : {'a', 'b', 'c'}) {
    env_.now_s += 7200;
    ProgramRun run(env_);
    const std::string source = StrCat("void f() {}  // ", std::string(7'000, letter), "\n");
    EXPECT_THAT(history.Note(run, Prepare(std::string(1, letter), source), "key"), IsOk());
  }
  EXPECT_THAT(Names(history.Read()), ElementsAre("c"));
  EXPECT_THAT(Files(".text"), SizeIs(1));
}

TEST_F(HistoryTest, TextsOfForgottenLoadsMakeRoom) {
  const auto source = [](char letter) { return StrCat("void f() {}  // ", std::string(7'000, letter), "\n"); };
  History history = Of(kProgram, {.bytes = 14'000});
  for (const char letter : {'1', '2'}) {
    env_.now_s += 7200;
    ProgramRun run(env_);
    EXPECT_THAT(history.Note(run, Prepare("a", source(letter)), std::string(1, letter)), IsOk());
  }
  env_.now_s += 7200;
  ProgramRun run(env_);
  EXPECT_THAT(history.Note(run, Prepare("a", source('2')), "2"), IsOk());
  EXPECT_THAT(history.Note(run, Prepare("b", source('b')), "key"), IsOk());
  EXPECT_THAT(Names(history.Read()), ElementsAre("a", "b"));
  EXPECT_THAT(Files(".text"), SizeIs(2));
}

// A program whose texts take more than there is room for would write them at each start.
TEST_F(HistoryTest, OfARunWithTooManyBytesTheFirstLoadsAreNotedOnce) {
  History history = Of(kProgram, {.bytes = 14'000});
  for (int start = 0; start < 2; ++start) {
    const int written = env_.Calls(Operation::kWriteFile);
    env_.now_s += 7200;
    ProgramRun run(env_);
    for (const char letter : {'a', 'b', 'c', 'd'}) {
      const std::string source = StrCat("void f() {}  // ", std::string(7'000, letter), "\n");
      EXPECT_THAT(history.Note(run, Prepare(std::string(1, letter), source), "key"), IsOk());
    }
    EXPECT_THAT(Names(history.Read()), ElementsAre("a", "b"));
    if (start > 0) {
      EXPECT_EQ(env_.Calls(Operation::kWriteFile), written);
    }
  }
}

TEST_F(HistoryTest, TheProgramThatWasUsedLeastRecentlyGoesFirst) {
  for (const char* program : {"/1.py", "/2.py", "/3.py"}) {
    History history = Of(program, {.programs = 2});
    RunThrough(history, {"a"});
    History first = Of("/1.py", {.programs = 2});
    if (program == std::string("/2.py")) RunThrough(first, {"a"});
  }
  EXPECT_THAT(Of("/3.py").Read().loads, SizeIs(1));
  EXPECT_THAT(Of("/2.py").Read().loads, IsEmpty());
  EXPECT_THAT(Of("/1.py").Read().loads, SizeIs(1));
}

TEST_F(HistoryTest, AWarmUpMakesNoHistory) {
  EXPECT_TRUE(absl::IsNotFound(Of(kProgram).Lock().status()));
  EXPECT_FALSE(env_.Stat(histories_).ok());
}

TEST_F(HistoryTest, OneWarmUpOfAProgramAtATime) {
  History history = Of(kProgram);
  RunThrough(history, {"a"});
  const auto lock = history.Lock();
  EXPECT_THAT(lock.status(), IsOk());
  EXPECT_TRUE(absl::IsUnavailable(Of(kProgram).Lock().status()));
}

TEST_F(HistoryTest, AFailureIsTold) {
  History history = Of(kProgram);
  env_.Inject(NoSpace(Operation::kWriteFile, ".load"));
  ProgramRun run(env_);
  EXPECT_TRUE(absl::IsResourceExhausted(history.Note(run, Prepare("a"), "key")));
  EXPECT_THAT(history.Read().loads, IsEmpty());
}

}  // namespace
}  // namespace kernix
