// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <set>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "daemon/exec/executor.h"
#include "tests/support/fault_env.h"
#include "tests/support/mem_env.h"
#include "tests/support/temp_folder.h"

namespace kernix::exec {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kScratch[] = "/scratch";
constexpr char kTool[] = "/bin/tool";

Action MakeAction() {
  Action action;
  action.step = "compile";
  action.argv = {kTool, "-o", "out/a.o", StrCat("-map=", kRootPlaceholder, "=.")};
  action.environment = {{"LC_ALL", "C"}, {"ROOT", std::string(kRootPlaceholder)}};
  action.inputs = {MakeInput("a.cc", "int a;"), MakeInput("inc/0/b.h", "int b;")};
  action.outputs = {"out/a.o"};
  return action;
}

// Records what it is told, in order.
class Recorder : public ActionObserver {
 public:
  void OnQueued(const Action&, int ahead) override { events.push_back(StrCat("queued ", ahead)); }
  void OnStarted(const Action& action) override { events.push_back(StrCat("started ", action.step)); }
  void OnOutput(std::string_view text) override { events.push_back(StrCat("output ", text)); }

  std::vector<std::string> events;
};

class RunActionTest : public ::testing::Test {
 protected:
  // The tool does `work` in its folder and ends with `result`.
  void SetTool(std::function<void(const ProcessSpec&)> work, const ProcessResult& result = {}) {
    mem_.SetProgram(kTool, [work = std::move(work), result](const ProcessSpec& spec, Cancellation*) {
      work(spec);
      return absl::StatusOr<ProcessResult>(result);
    });
  }

  void SetResult(const ProcessResult& result) {
    SetTool([](const ProcessSpec&) {}, result);
  }

  void Write(const std::string& path, const std::string& text) { ASSERT_TRUE(mem_.WriteFile(path, text, 0644).ok()); }

  void ExpectNothingLeft() { EXPECT_THAT(mem_.ListDirectory(kScratch).value(), IsEmpty()); }

  absl::StatusOr<ActionResult> Run(const Action& action) {
    return RunAction(env_, {kScratch}, action, &seen_, nullptr);
  }

  v1::ErrorDetail RunToError(const Action& action) {
    const absl::StatusOr<ActionResult> result = Run(action);
    EXPECT_FALSE(result.ok());
    ExpectNothingLeft();
    return result.ok() ? v1::ErrorDetail() : GetErrorDetail(result.status());
  }

  MemEnv mem_;
  FaultEnv env_{mem_};
  Recorder seen_;
};

TEST_F(RunActionTest, AllInputsHaveTheSameTimeForEver) {
  std::set<int64_t> times;
  SetTool([&](const ProcessSpec& spec) {
    for (const char* path : {"/a.cc", "/inc/0/b.h"}) {
      times.insert(mem_.Stat(spec.working_directory + path)->mtime_ns);
    }
    Write(spec.working_directory + "/out/a.o", "object");
  });
  ASSERT_TRUE(Run(MakeAction()).ok());
  EXPECT_THAT(times, ::testing::ElementsAre(946684800'000'000'000));
}

TEST_F(RunActionTest, StagesInputsAndBringsBackOutputs) {
  std::string source, header;
  SetTool([&](const ProcessSpec& spec) {
    source = mem_.ReadFile(spec.working_directory + "/a.cc").value();
    header = mem_.ReadFile(spec.working_directory + "/inc/0/b.h").value();
    Write(spec.working_directory + "/out/a.o", "object");
  });
  const absl::StatusOr<ActionResult> result = Run(MakeAction());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(source, "int a;");
  EXPECT_EQ(header, "int b;");
  EXPECT_EQ(*result->outputs.at("out/a.o"), "object");
  ExpectNothingLeft();
}

TEST_F(RunActionTest, PutsTheRootInAndTakesItOutAgain) {
  std::string root;
  mem_.SetProgram(kTool, [&](const ProcessSpec& spec, Cancellation*) {
    root = spec.working_directory;
    return absl::StatusOr<ProcessResult>(ProcessResult{.exit_code = 1, .output = root + "/a.cc:1: error in " + root});
  });
  const absl::StatusOr<ActionResult> result = Run(MakeAction());
  ASSERT_TRUE(result.ok()) << result.status();
  const ProcessSpec spec = mem_.Processes().at(0);
  EXPECT_EQ(spec.argv.back(), "-map=" + root + "=.");
  EXPECT_EQ(spec.environment.at("ROOT"), root);
  EXPECT_EQ(spec.environment.at("TMPDIR"), root);
  EXPECT_EQ(result->output, "a.cc:1: error in .");
  EXPECT_EQ(result->exit_code, 1);
  std::string shown;
  ASSERT_GE(seen_.events.size(), 2u);
  EXPECT_EQ(seen_.events[0], "started compile");
  for (size_t i = 1; i < seen_.events.size(); ++i) shown += seen_.events[i].substr(std::string("output ").size());
  EXPECT_EQ(shown, "a.cc:1: error in .");
}

TEST_F(RunActionTest, AnActionMayChooseItsOwnTmpdir) {
  SetResult({.exit_code = 1});
  Action action = MakeAction();
  action.environment["TMPDIR"] = "/elsewhere";
  ASSERT_TRUE(Run(action).ok());
  EXPECT_EQ(mem_.Processes().at(0).environment.at("TMPDIR"), "/elsewhere");
}

TEST_F(RunActionTest, AFailedCommandNeedNotMakeItsOutputs) {
  SetResult({.exit_code = 2, .output = "error: no"});
  const absl::StatusOr<ActionResult> result = Run(MakeAction());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 2);
  EXPECT_THAT(result->outputs, IsEmpty());
}

TEST_F(RunActionTest, ASuccessWithoutItsOutputIsAnError) {
  SetResult({});
  const v1::ErrorDetail error = RunToError(MakeAction());
  EXPECT_EQ(error.kind(), v1::ErrorDetail::INTERNAL);
  EXPECT_THAT(error.message(), HasSubstr("out/a.o"));
}

TEST_F(RunActionTest, AnOutputThatIsALinkIsNotFollowed) {
  Write("/secret", "secret");
  SetTool([&](const ProcessSpec& spec) {
    ASSERT_TRUE(mem_.CreateSymlink("/secret", spec.working_directory + "/out/a.o").ok());
  });
  EXPECT_EQ(RunToError(MakeAction()).kind(), v1::ErrorDetail::INTERNAL);
  EXPECT_EQ(mem_.ReadFile("/secret").value(), "secret");
}

TEST_F(RunActionTest, AnOutputWhoseFolderIsALinkIsNotFollowed) {
  ASSERT_TRUE(mem_.CreateDirectories("/others", 0700).ok());
  Write("/others/a.o", "secret");
  SetTool([&](const ProcessSpec& spec) {
    ASSERT_TRUE(mem_.RemoveTree(spec.working_directory + "/out").ok());
    ASSERT_TRUE(mem_.CreateSymlink("/others", spec.working_directory + "/out").ok());
  });
  EXPECT_EQ(RunToError(MakeAction()).kind(), v1::ErrorDetail::INTERNAL);
  EXPECT_EQ(mem_.ReadFile("/others/a.o").value(), "secret");
}

TEST_F(RunActionTest, PathsOutsideTheRootAreRefused) {
  for (const char* path : {"/etc/x", "../x", "a/../../x", "", "."}) {
    Action action = MakeAction();
    action.inputs = {MakeInput(path, "x")};
    EXPECT_EQ(KindOf(Run(action).status()), v1::ErrorDetail::INTERNAL) << path;
    action = MakeAction();
    action.outputs = {path};
    EXPECT_EQ(KindOf(Run(action).status()), v1::ErrorDetail::INTERNAL) << path;
  }
  EXPECT_THAT(mem_.Processes(), IsEmpty());
}

TEST_F(RunActionTest, AFullDiskIsAResourceErrorWhereverItShows) {
  for (const Operation operation :
       {Operation::kCreateTempDirectory, Operation::kCreateDirectories, Operation::kWriteFile}) {
    ASSERT_TRUE(mem_.CreateDirectories(kScratch, 0700).ok());
    env_.Inject(NoSpace(operation, kScratch));
    const v1::ErrorDetail error = RunToError(MakeAction());
    EXPECT_EQ(error.kind(), v1::ErrorDetail::RESOURCE) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(StrCat("free space on the disk of ", kScratch)));
    env_.Clear();
  }
  EXPECT_THAT(mem_.Processes(), IsEmpty());
}

struct MachineFailureCase {
  ProcessResult result;
  const char* words;
};

TEST_F(RunActionTest, AToolThatTheMachineFailedIsAResourceErrorWithWhatItSaid) {
  const MachineFailureCase cases[] = {
      {{.exit_code = 1, .output = "a.o: No space left on device"}, "no space left"},
      {{.exit_code = 1, .output = "fatal error: when writing output to a.s: No such file or directory"},
       "no space left"},
      {{.exit_code = 137, .signal = SIGKILL, .output = "partial"}, "memory"},
      {{.exit_code = 1, .output = "g++: fatal error: Killed signal terminated program cc1plus"}, "memory"},
      {{.exit_code = 4, .output = "g++: internal compiler error: Killed (program cc1plus)"}, "memory"},
      {{.exit_code = 254, .output = "clang++: error: unable to execute command: Killed"}, "memory"},
      {{.exit_code = 1, .output = "collect2: fatal error: ld terminated with signal 9 [Killed]"}, "memory"},
      {{.exit_code = 255, .output = "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"}, "memory"},
      {{.exit_code = 1, .output = "cc1plus: out of memory allocating 65536 bytes after a total of 99 bytes"},
       "refused memory"},
      {{.exit_code = 1, .output = "virtual memory exhausted: Cannot allocate memory"}, "refused memory"},
      {{.exit_code = 1, .output = "ld: final link failed: memory exhausted"}, "refused memory"},
      {{.exit_code = 255, .output = "ptxas fatal   : Memory allocation failure"}, "refused memory"},
      {{.exit_code = 152, .signal = SIGXCPU}, "more processor time than 16 s"},
      {{.exit_code = 1, .output = "g++: fatal error: CPU time limit exceeded signal terminated program cc1plus"},
       "job_timeout"},
      {{.exit_code = 137, .signal = SIGKILL, .excess = ProcessResult::Excess::kProcesses}, "max_processes_per_job"},
      {{.exit_code = 137, .signal = SIGKILL, .excess = ProcessResult::Excess::kBytesOfFiles},
       "made files of more than 0 bytes together"},
      {{.exit_code = 137, .signal = SIGKILL, .excess = ProcessResult::Excess::kMemory}, "max_process_memory_bytes"},
      {{.exit_code = 137, .signal = SIGKILL, .timed_out = true, .output = "partial"}, "did not end within 1.5 s"},
  };
  for (const MachineFailureCase& c : cases) {
    SetResult(c.result);
    Action action = MakeAction();
    action.timeout = std::chrono::milliseconds(1500);
    const v1::ErrorDetail error = RunToError(action);
    EXPECT_EQ(error.kind(), v1::ErrorDetail::RESOURCE) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(c.words));
    EXPECT_EQ(error.compiler_output(), c.result.output);
    EXPECT_THAT(error.command(), HasSubstr("/bin/tool -o out/a.o"));
    EXPECT_THAT(error.command(), Not(HasSubstr(kScratch)));
  }
}

// Text that a compiler quotes from a source is not the compiler's own message.
TEST_F(RunActionTest, ASourceMaySpeakOfMemory) {
  SetResult(
      {.exit_code = 1, .output = "a.cc:1: error: x\n 1 | catch (const std::bad_alloc&) { puts(\"out of memory\"); }"});
  EXPECT_EQ(Run(MakeAction())->exit_code, 1);
}

TEST_F(RunActionTest, TheLimitsOfTheCommandAreThoseOfTheOptions) {
  Action action = MakeAction();
  action.timeout = std::chrono::milliseconds(1500);
  SetTool([&](const ProcessSpec& spec) { Write(spec.working_directory + "/out/a.o", "object"); });
  const RunOptions options{.scratch_directory = kScratch,
                           .max_output_bytes = 1000,
                           .max_process_memory_bytes = 2000,
                           .max_processes = 30,
                           .niceness = 7};
  ASSERT_TRUE(RunAction(env_, options, action, nullptr, nullptr).ok());
  const ProcessSpec spec = mem_.Processes().at(0);
  EXPECT_EQ(spec.max_file_bytes, 1000u);
  EXPECT_EQ(spec.max_address_space_bytes, 2000u);
  EXPECT_EQ(spec.max_processes, 30);
  EXPECT_EQ(spec.niceness, 7);
  EXPECT_EQ(spec.max_cpu_time, std::chrono::seconds(16));  // 2 * 4 * 2 s
}

TEST_F(RunActionTest, AToolThatFailsOnAFullDiskWasFailedByIt) {
  SetResult({.exit_code = 4, .output = "internal error: assertion failed"});
  EXPECT_EQ(Run(MakeAction())->exit_code, 4);
  mem_.SetFreeBytes(1000);
  const v1::ErrorDetail error = RunToError(MakeAction());
  EXPECT_EQ(error.kind(), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(error.message(), HasSubstr(StrCat("found no space left: free space on the disk of ", kScratch)));
  EXPECT_EQ(error.compiler_output(), "internal error: assertion failed");
}

TEST_F(RunActionTest, AToolThatSucceedsMaySpeakOfFullDisks) {
  SetTool([&](const ProcessSpec& spec) { Write(spec.working_directory + "/out/a.o", "object"); },
          {.output = "warning: No space left on device"});
  EXPECT_TRUE(Run(MakeAction()).ok());
}

TEST_F(RunActionTest, AToolThatCannotBeStartedIsAToolchainError) {
  const v1::ErrorDetail missing = RunToError(MakeAction());  // no file exists at kTool
  EXPECT_EQ(missing.kind(), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(missing.message(), HasSubstr(kTool));
  env_.Inject(Forbidden(Operation::kRunProcess, kTool));
  EXPECT_EQ(RunToError(MakeAction()).kind(), v1::ErrorDetail::TOOLCHAIN);
}

TEST_F(RunActionTest, WhatWasCancelledBeforeDoesNotStart) {
  Cancellation cancellation;
  cancellation.Cancel();
  const auto result = RunAction(env_, {kScratch}, MakeAction(), &seen_, &cancellation);
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::CANCELLED);
  EXPECT_THAT(seen_.events, IsEmpty());
  EXPECT_THAT(mem_.Processes(), IsEmpty());
}

TEST_F(RunActionTest, ACancelledToolIsACancelledAction) {
  mem_.SetProgram(kTool, [](const ProcessSpec&, Cancellation* cancellation) -> absl::StatusOr<ProcessResult> {
    cancellation->Cancel();
    return absl::CancelledError("tool was cancelled");
  });
  Cancellation cancellation;
  const auto result = RunAction(env_, {kScratch}, MakeAction(), &seen_, &cancellation);
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::CANCELLED);
  ExpectNothingLeft();
}

TEST_F(RunActionTest, OfTwoLimitsTheOneThatAppliedIsNamed) {
  SetResult({.exit_code = 153, .signal = SIGXFSZ});
  ASSERT_TRUE(mem_.CreateDirectories("/proc/self", 0755).ok());
  Write("/proc/self/limits", "Max file size             5000                 5000                 bytes     \n");
  const auto error = [&](uint64_t max_output_bytes) {
    const RunOptions options{kScratch, max_output_bytes};
    return GetErrorDetail(RunAction(env_, options, MakeAction(), nullptr, nullptr).status()).message();
  };
  EXPECT_THAT(error(5'000), HasSubstr("larger than 5000 bytes, this kernixd's max_output_bytes"));
  EXPECT_THAT(error(10'000), HasSubstr("larger than 5000 bytes, kernixd's own limit"));
  EXPECT_THAT(error(0), HasSubstr("larger than 5000 bytes, kernixd's own limit"));
}

TEST_F(RunActionTest, AHardLimitOfKernixdsProcessorTimeIsNamed) {
  ASSERT_TRUE(mem_.CreateDirectories("/proc/self", 0755).ok());
  Write("/proc/self/limits", "Max cpu time              5                    5                    seconds   \n");
  SetResult({.exit_code = 137, .signal = SIGKILL, .processor = std::chrono::milliseconds(4'100)});
  EXPECT_THAT(RunToError(MakeAction()).message(), HasSubstr("processor time than 5 s, kernixd's own limit"));
  SetResult({.exit_code = 137, .signal = SIGKILL, .processor = std::chrono::seconds(3)});
  EXPECT_THAT(RunToError(MakeAction()).message(), HasSubstr("for lack of memory"));
}

// Runs on the real operating system: it cuts output into pieces as pipes do, and the scratch folder's path has a link.
TEST(RunActionRealTest, ShellInALinkedScratchFolder) {
  const testing::TempFolder temp;
  ASSERT_TRUE(Env::Posix().CreateDirectories(temp.File("real"), 0700).ok());
  Action link;
  link.step = "link";
  link.argv = {"/bin/ln", "-s", temp.File("real"), temp.File("alias")};
  ASSERT_TRUE(RunAction(Env::Posix(), {temp.File("real")}, link, nullptr, nullptr).ok());

  Action action;
  action.step = "shell";
  action.argv = {"/bin/sh", "-c", "cat in/x > out/y; echo \"$PWD/in/x\"; pwd -P; echo $TMPDIR; echo ${HOME-none}"};
  action.inputs = {MakeInput("in/x", "content")};
  action.outputs = {"out/y"};
  Recorder seen;
  const auto result = RunAction(Env::Posix(), {temp.File("alias")}, action, &seen, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*result->outputs.at("out/y"), "content");
  EXPECT_EQ(result->output, "in/x\n.\n.\nnone\n");
  EXPECT_THAT(Env::Posix().ListDirectory(temp.File("real")).value(), IsEmpty());
}

TEST(RunActionRealTest, LinksLeadOutOfTheRootAndProgramsAreFoundThroughThem) {
  const testing::TempFolder temp;
  ASSERT_TRUE(Env::Posix().CreateDirectories(temp.File("a $(b) c"), 0700).ok());
  ASSERT_TRUE(Env::Posix().CreateSymlink("/bin/sh", temp.File("a $(b) c/shell")).ok());
  ASSERT_TRUE(Env::Posix().CreateDirectories(temp.File("scratch"), 0700).ok());
  Action action;
  action.step = "shell";
  action.argv = {"tools/0/shell", "-c", "pwd"};
  action.links = {{"tools/0", temp.File("a $(b) c")}};
  const auto result = RunAction(Env::Posix(), {temp.File("scratch")}, action, nullptr, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 0) << result->output;
  action.links = {{"../x", "/"}};
  EXPECT_EQ(KindOf(RunAction(Env::Posix(), {temp.File("scratch")}, action, nullptr, nullptr).status()),
            v1::ErrorDetail::INTERNAL);
}

TEST(RunActionRealTest, NothingThatAShellWouldReadGoesToAToolThatUsesOne) {
  const testing::TempFolder temp;
  const auto run = [](const std::string& folder, const std::string& word) {
    EXPECT_TRUE(Env::Posix().CreateDirectories(folder, 0700).ok());
    Action action;
    action.step = "compile";
    action.argv = {"/bin/echo", word};
    action.tool_uses_shell = true;
    return RunAction(Env::Posix(), {folder}, action, nullptr, nullptr).status();
  };
  EXPECT_TRUE(run(temp.File("plain"), "-O2").ok());
  EXPECT_TRUE(run(temp.File("with (blanks) 'n' such"), "-O2").ok());
  EXPECT_EQ(KindOf(run(temp.File("plain"), "-DX=$(id)")), v1::ErrorDetail::INTERNAL);
  for (const char* folder : {"$(id)", "`id`", "a\"b", "a\\b"}) {
    const absl::Status status = run(temp.File(folder), "-O2");
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE) << folder;
    EXPECT_THAT(std::string(status.message()), HasSubstr("KERNIX_CACHE_DIR"));
  }
}

TEST(RunActionRealTest, AFileOverTheLimitIsAnErrorThatNamesIt) {
  const testing::TempFolder temp;
  Action action;
  action.step = "compile";
  action.argv = {"/bin/sh", "-c", "exec head -c 20000 /dev/zero > big.o"};
  action.outputs = {"big.o"};
  const auto result = RunAction(Env::Posix(), {temp.path(), 10'000}, action, nullptr, nullptr);
  const v1::ErrorDetail error = GetErrorDetail(result.status());
  EXPECT_EQ(error.kind(), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(error.message(), HasSubstr("made a file larger than 10000 bytes"));
  EXPECT_THAT(error.message(), HasSubstr("max_output_bytes"));
  EXPECT_THAT(Env::Posix().ListDirectory(temp.path()).value(), IsEmpty());
}

// Sets the soft limit of this process for a while.
class ScopedFileLimit {
 public:
  explicit ScopedFileLimit(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &saved_), 0);
    const struct rlimit limit = {bytes, saved_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~ScopedFileLimit() { setrlimit(RLIMIT_FSIZE, &saved_); }
  ScopedFileLimit(const ScopedFileLimit&) = delete;
  ScopedFileLimit& operator=(const ScopedFileLimit&) = delete;

 private:
  struct rlimit saved_ = {};
};

TEST(RunActionRealTest, ALimitThatKernixdWasStartedWithIsNamedAsSuch) {
  const testing::TempFolder temp;
  const ScopedFileLimit limit(1 << 20);
  Action action;
  action.step = "compile";
  // As if kernix-spawn, which may be running already, had been started with that limit, too: in blocks of 512 bytes.
  action.argv = {"/bin/sh", "-c", "ulimit -f 2048; exec head -c 2000000 /dev/zero > big.o"};
  action.outputs = {"big.o"};
  const auto result = RunAction(Env::Posix(), {temp.path(), /*max_output_bytes=*/0}, action, nullptr, nullptr);
  const std::string message = GetErrorDetail(result.status()).message();
  EXPECT_THAT(message, HasSubstr("made a file larger than 1048576 bytes, kernixd's own limit"));
  EXPECT_THAT(message, HasSubstr("ulimit -f"));
  EXPECT_THAT(message, Not(HasSubstr("max_output_bytes")));
}

TEST(RunActionRealTest, OutputsThatAreTooMuchTogetherAreNotRead) {
  const testing::TempFolder temp;
  Action action;
  action.step = "compile";
  action.argv = {"/bin/sh", "-c", "head -c 6000 /dev/zero > a.o; head -c 6000 /dev/zero > b.o"};
  action.outputs = {"a.o", "b.o"};
  EXPECT_TRUE(RunAction(Env::Posix(), {temp.path(), 12'000}, action, nullptr, nullptr).ok());
  const auto result = RunAction(Env::Posix(), {temp.path(), 11'999}, action, nullptr, nullptr);
  const v1::ErrorDetail error = GetErrorDetail(result.status());
  EXPECT_EQ(error.kind(), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(error.message(), HasSubstr("12000 bytes, more than 11999 bytes"));
}

// Each file is within its own limit.
TEST(RunActionRealTest, FilesThatAreTooMuchTogetherEndTheJob) {
  const testing::TempFolder scratch;
  Action action;
  action.step = "compile";
  action.argv = {"/bin/sh", "-c",
                 "mkdir d; for i in 1 2 3 4 5 6 7 8; do head -c 90000 /dev/zero >d/$i; done; exec sleep 100"};
  const RunOptions options = {.scratch_directory = scratch.path(), .max_output_bytes = 100'000};
  const absl::Status status = RunAction(Env::Posix(), options, action, nullptr, nullptr).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(status.message()), HasSubstr("made files of more than 400000 bytes together"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_output_bytes"));
}

TEST(RunActionRealTest, ATimeLimitEndsWhatHangs) {
  const testing::TempFolder temp;
  Action action;
  action.step = "hang";
  action.argv = {"/bin/sh", "-c", "echo begun; exec cat /dev/zero > /dev/null"};
  action.timeout = std::chrono::milliseconds(300);
  const auto result = RunAction(Env::Posix(), {temp.path()}, action, nullptr, nullptr);
  ASSERT_FALSE(result.ok());
  const v1::ErrorDetail error = GetErrorDetail(result.status());
  EXPECT_EQ(error.kind(), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(error.compiler_output(), "begun\n");
}

}  // namespace
}  // namespace kernix::exec
