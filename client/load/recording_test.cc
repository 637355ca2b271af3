// SPDX-License-Identifier: Apache-2.0
#include "client/load/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "client/tools/gpu_architecture.h"
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

class RecordingTest : public ::testing::Test {
 protected:
  RecordingTest() { EXPECT_THAT(Env::Posix().CreateDirectories(folder_), IsOk()); }

  PreparedLoad Prepare(const std::string& name, const std::string& source, LoadOptions options = {}) {
    const GetEnv get_env = Variables({{"CXX", testing::HostCompiler()}});
    options.functions = {{Function{"f", {}}}};
    const LoadSurroundings surroundings{
        .env = Env::Posix(), .get_env = get_env, .site_packages = {}, .header_folder = [this] {
          return scratch_.path();
        }};
    absl::StatusOr<PreparedLoad> load =
        PrepareLoad(surroundings, v1::LANGUAGE_CPP, name, {{.text = source, .label = "", .path = ""}}, options);
    EXPECT_TRUE(load.ok()) << load.status();
    return *std::move(load);
  }

  Recording Read() {
    absl::StatusOr<Recording> recording = ReadRecording(Env::Posix(), folder_);
    EXPECT_TRUE(recording.ok()) << recording.status();
    return *std::move(recording);
  }

  std::vector<std::string> Files() { return Env::Posix().ListDirectory(folder_).value(); }

  ScratchFolder scratch_;
  const std::string folder_ = scratch_ / "recorded";
};

TEST_F(RecordingTest, ALoadIsNotedWithItsTextsAndWithoutItsAsker) {
  scratch_.Write("inc/x.h", "int x;\n");
  LoadOptions options;
  options.include_paths = {scratch_ / "inc"};
  options.verbose = options.batch = options.force_rebuild = true;
  options.max_parallel_jobs = 3;
  const std::string source = "#include <x.h>\nvoid f() {}\n";
  EXPECT_THAT(NoteLoad(Env::Posix(), folder_, Prepare("m", source, options), "key"), IsOk());
  const Recording recording = Read();
  ASSERT_THAT(recording.loads, SizeIs(1));
  v1::LoadRequest request = recording.loads[0].request();
  EXPECT_EQ(recording.loads[0].key(), "key");
  EXPECT_EQ(recording.texts,
            (std::map<Digest, std::string>{{DigestOf(source), source}, {DigestOf("int x;\n"), "int x;\n"}}));
  EXPECT_EQ(request.source(0).text(), "");
  EXPECT_EQ(request.header(0).path(), "x.h");
  EXPECT_EQ(request.options().include_root_count(), 1u);
  EXPECT_FALSE(request.has_toolchain() || request.verbose() || request.batch() || request.force_rebuild());
  EXPECT_EQ(request.max_parallel_jobs(), 0u);
}

TEST_F(RecordingTest, TheSameLoadIsThereOnceWhoeverNotesIt) {
  std::vector<std::thread> threads;
  const PreparedLoad load = Prepare("m", "void f() {}\n");
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_THAT(NoteLoad(Env::Posix(), folder_, load, "key"), IsOk()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(NoteLoad(Env::Posix(), folder_, Prepare("m", "void f() {}\n"), "key"), IsOk());
  EXPECT_THAT(Files(), SizeIs(2));
  EXPECT_THAT(NoteLoad(Env::Posix(), folder_, Prepare("m", "void f() {}\n"), "another toolchain's key"), IsOk());
  EXPECT_THAT(Read().loads, SizeIs(2));
}

TEST_F(RecordingTest, LoadsComeByNameAndKey) {
  for (const auto& [name, key] : {std::pair("b", "1"), {"a", "2"}, {"a", "1"}}) {
    EXPECT_THAT(NoteLoad(Env::Posix(), folder_, Prepare(name, "void f() {}\n"), key), IsOk());
  }
  std::vector<std::string> order;
  for (const v1::RecordedLoad& load : Read().loads) order.push_back(load.request().name() + load.key());
  EXPECT_THAT(order, ElementsAre("a1", "a2", "b1"));
}

// A process that is killed while it notes a load leaves nothing that counts.
TEST_F(RecordingTest, WhatIsHalfWrittenDoesNotCount) {
  FaultEnv env(Env::Posix());
  for (const char* suffix : {".text", ".load"}) {
    env.Inject(NoSpace(Operation::kRename, suffix));
    EXPECT_FALSE(NoteLoad(env, folder_, Prepare("m", "void f() {}\n"), "key").ok());
    EXPECT_THAT(Read().loads, IsEmpty());
  }
  EXPECT_THAT(NoteLoad(env, folder_, Prepare("m", "void f() {}\n"), "key"), IsOk());
  EXPECT_THAT(Read().loads, SizeIs(1));
}

TEST_F(RecordingTest, AHeaderThatHasChangedSinceIsNotRecorded) {
  scratch_.Write("inc/x.h", "int x;\n");
  LoadOptions options;
  options.include_paths = {scratch_ / "inc"};
  const PreparedLoad load = Prepare("m", "#include <x.h>\nvoid f() {}\n", options);
  scratch_.Write("inc/x.h", "int other;\n");
  EXPECT_TRUE(absl::IsAborted(NoteLoad(Env::Posix(), folder_, load, "key")));
  EXPECT_THAT(Read().loads, IsEmpty());
}

TEST_F(RecordingTest, ARequestGetsTheToolchainOfThisMachine) {
  EXPECT_THAT(NoteLoad(Env::Posix(), folder_, Prepare("m", "void f() {}\n"), "key"), IsOk());
  v1::RecordedLoad load = Read().loads[0];
  const std::string compiler = scratch_.WriteProgram("bin/g++");
  const GetEnv get_env = Variables({{"CXX", compiler}});
  const LoadSurroundings surroundings{
      .env = Env::Posix(), .get_env = get_env, .site_packages = {}, .header_folder = nullptr};
  EXPECT_EQ(RequestHere(surroundings, load)->request.toolchain().host_compiler(), compiler);
  load.set_host_compiler(testing::HostCompiler());
  EXPECT_EQ(RequestHere(surroundings, load)->request.toolchain().host_compiler(), testing::HostCompiler())
      << "one that a flag names counts more than the environment";
}

TEST_F(RecordingTest, AnArchitectureOfTheGpuIsThatOfTheGpuHere) {
  v1::RecordedLoad load;
  load.mutable_request()->mutable_options()->add_architectures("sm_12");
  const GetEnv get_env = Variables({{"CXX", testing::HostCompiler()}});
  const LoadSurroundings surroundings{
      .env = Env::Posix(), .get_env = get_env, .site_packages = {}, .header_folder = nullptr};
  EXPECT_THAT(RequestHere(surroundings, load)->request.options().architectures(), ElementsAre("sm_12"))
      << "somebody named it";
  load.set_architecture_of_machine(true);
  const std::string here = DetectGpuArchitecture().value_or("sm_12");
  EXPECT_THAT(RequestHere(surroundings, load)->request.options().architectures(), ElementsAre(here));
}

}  // namespace
}  // namespace kernix
