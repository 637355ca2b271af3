// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

#include "common/os/posix_env.h"
#include "tests/support/await.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

ProcessSpec Shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}, .environment = {{"PATH", "/usr/bin:/bin"}}};
}

absl::StatusOr<ProcessResult> RunToEnd(const ProcessSpec& spec, Cancellation* cancellation = nullptr) {
  return Env::Posix().RunProcess(spec, nullptr, cancellation);
}

std::string OutputOf(const std::string& script) {
  const auto result = RunToEnd(Shell(script));
  EXPECT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 0) << result->output;
  return result->output;
}

// A named pipe that shows whether a program that opened it for writing is still running.
class Lifeline {
 public:
  Lifeline() {
    EXPECT_EQ(mkfifo(path().c_str(), 0600), 0);
    fd_ = open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_EQ(fcntl(fd_, F_SETFL, 0), 0);
  }
  ~Lifeline() { close(fd_); }
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  std::string path() const { return scratch_ / "lifeline"; }
  // Whether no program has the pipe open. No program may have written to it.
  bool IsGone() const {
    pollfd fd = {fd_, POLLIN, 0};
    return poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP) != 0;
  }
  // Returns once no program has the pipe open. No program may have written to it.
  bool WaitUntilGone() {
    char byte = 0;
    AwaitReadable("the end of all that hold the lifeline", fd_);
    return read(fd_, &byte, 1) == 0;
  }

 private:
  ScratchDirectory scratch_;
  int fd_ = -1;
};

TEST(RunProcessTest, TellsHowAProgramEnded) {
  const auto result = RunToEnd(Shell("exit 7"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 7);
  EXPECT_EQ(result->signal, 0);
  EXPECT_FALSE(result->timed_out);
  EXPECT_GT(result->max_rss_bytes, 0u);
}

TEST(RunProcessTest, TellsTheSignalThatEndedIt) {
  const auto result = RunToEnd(Shell("kill -SEGV $$"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->signal, SIGSEGV);
  EXPECT_EQ(result->exit_code, 128 + SIGSEGV);
}

TEST(RunProcessTest, KeepsBothStreamsInOrder) { EXPECT_EQ(OutputOf("echo 1; echo 2 >&2; echo 3"), "1\n2\n3\n"); }

TEST(RunProcessTest, AProcessGetsNoMoreMemoryThanItMay) {
  ProcessSpec spec = Shell("head -c 300000000 /dev/zero | tail -c 200000000 | wc -c");  // tail keeps what it may print
  spec.max_address_space_bytes = 100 << 20;
  const auto result = RunToEnd(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(result->output, HasSubstr("memory exhausted"));
  spec.max_address_space_bytes = 1 << 30;
  const auto twin = RunToEnd(spec);
  ASSERT_THAT(twin, IsOk());
  EXPECT_EQ(twin->output, "200000000\n");
}

TEST(RunProcessTest, AProcessGetsNoMoreProcessorTimeThanItMay) {
  ProcessSpec spec = Shell("while :; do :; done");
  spec.max_cpu_time = std::chrono::seconds(1);
  const auto result = RunToEnd(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->signal, SIGXCPU);
  EXPECT_FALSE(result->timed_out);
}

// At the second limit, the kernel kills the process.
TEST(RunProcessTest, WhoIgnoresThatItsProcessorTimeIsOverGetsALittleMore) {
  ProcessSpec spec = Shell("ulimit -S -t; ulimit -H -t");
  spec.max_cpu_time = std::chrono::seconds(1);
  const auto result = RunToEnd(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(result->output, MatchesRegex("1\n[1-9][0-9]?\n"));
  EXPECT_NE(result->output, "1\n1\n");
}

// `count` sleepers, and the shell itself.
std::string Sleepers(int count, const std::string& end) {
  return "i=0; while [ $i -lt " + std::to_string(count) + " ]; do sleep 1000 & i=$((i+1)); done; " + end;
}

TEST(RunProcessTest, NicenessIsAboveThatOfThisProcess) {
  const int own = getpriority(PRIO_PROCESS, 0);
  ProcessSpec spec = Shell("nice");
  for (const int more : {0, 1, 40}) {
    spec.niceness = more;
    const auto result = RunToEnd(spec);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->output, StrCat(std::min(own + more, 19), "\n"));
  }
}

TEST(RunProcessTest, TooManyProcessesAreKilled) {
  Lifeline lifeline;
  ProcessSpec spec = Shell("exec 3> " + lifeline.path() + "; " + Sleepers(20, "wait"));
  spec.max_processes = 20;
  const auto result = RunToEnd(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->excess, ProcessResult::Excess::kProcesses);
  EXPECT_EQ(result->signal, SIGKILL);
  EXPECT_TRUE(lifeline.WaitUntilGone());
}

TEST(RunProcessTest, ThoseThatHaveAGroupOfTheirOwnAreCountedAndKilled) {
  Lifeline lifeline;
  ProcessSpec spec = Shell("exec 3> " + lifeline.path() + "; setsid sh -c '" + Sleepers(20, "wait") + "'; wait");
  spec.max_processes = 20;
  const auto result = RunToEnd(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->excess, ProcessResult::Excess::kProcesses);
  EXPECT_TRUE(lifeline.WaitUntilGone());
}

TEST(RunProcessTest, AsManyProcessesAsMayAreLeftAlone) {
  ProcessSpec spec = Shell(Sleepers(10, "sleep 1; echo alive"));  // longer than the interval between two counts
  spec.max_processes = 20;
  const auto result = RunToEnd(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->output, "alive\n");
  EXPECT_EQ(result->excess, ProcessResult::Excess::kNone);
}

TEST(RunProcessTest, StreamsOutputWhileTheProgramRuns) {
  ScratchDirectory scratch;
  ASSERT_EQ(mkfifo((scratch / "go").c_str(), 0600), 0);
  std::string streamed;
  std::thread answer;
  // The program continues only after this test has seen its first line.
  const auto result = Env::Posix().RunProcess(
      Shell("echo first; read x < " + (scratch / "go") + "; echo $x"),
      [&](std::string_view text) {
        streamed += text;
        if (streamed == "first\n") {
          answer = std::thread([&] {
            const int fd = open((scratch / "go").c_str(), O_WRONLY);
            EXPECT_EQ(write(fd, "second\n", 7), 7);
            close(fd);
          });
        }
      },
      nullptr);
  ASSERT_TRUE(answer.joinable());
  answer.join();
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(streamed, "first\nsecond\n");
  EXPECT_EQ(result->output, streamed);
}

TEST(RunProcessTest, KeepsAllOfALongOutput) {
  const auto result = RunToEnd(Shell("head -c 1000000 /dev/zero | tr '\\0' x"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->output, std::string(1'000'000, 'x'));
}

TEST(RunProcessTest, DropsTheMiddleOfTooMuch) {
  ProcessSpec spec = Shell("echo start; head -c 1000000 /dev/zero | tr '\\0' x; echo end");
  spec.max_output_bytes = 1000;
  const auto result = RunToEnd(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_TRUE(result->output.starts_with("start\n"));
  EXPECT_TRUE(result->output.ends_with("end\n"));
  EXPECT_LT(result->output.size(), 1100u);
}

TEST(RunProcessTest, InheritsNothingOfTheEnvironment) {
  ASSERT_EQ(setenv("KERNIX_LEAK", "1", 1), 0);
  const auto result = RunToEnd({.argv = {"/usr/bin/env"}, .environment = {{"A", "b c"}, {"EMPTY", ""}}});
  unsetenv("KERNIX_LEAK");
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->output, "A=b c\nEMPTY=\n");
}

TEST(RunProcessTest, InheritsNoDescriptor) {
  ScratchDirectory scratch;
  const int leak = open((scratch / "f").c_str(), O_CREAT | O_RDWR, 0600);  // on purpose without O_CLOEXEC
  ASSERT_GE(leak, 0);
  // ls opens one for the folder that it lists
  EXPECT_EQ(OutputOf("exec ls /proc/self/fd"), "0\n1\n2\n3\n");
  EXPECT_EQ(OutputOf("readlink /proc/self/fd/0"), "/dev/null\n");
  close(leak);
}

TEST(RunProcessTest, RunsWhereItIsTold) {
  ScratchDirectory scratch;
  ProcessSpec spec = Shell("pwd -P");
  spec.working_directory = scratch.path();
  const auto result = RunToEnd(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->output, Env::Posix().RealPath(scratch.path()).value() + "\n");
}

TEST(RunProcessTest, AFileOverTheLimitEndsTheProgram) {
  const ScratchDirectory scratch;
  ProcessSpec spec = Shell("head -c 5000 /dev/zero > small; exec head -c 50000 /dev/zero > large");
  spec.working_directory = scratch.path();
  spec.max_file_bytes = 10'000;
  const auto result = RunToEnd(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->signal, SIGXFSZ);
  EXPECT_EQ(Env::Posix().Stat(scratch / "small")->size, 5'000u);
  EXPECT_EQ(Env::Posix().Stat(scratch / "large")->size, 10'000u);
}

TEST(RunProcessTest, LeavesNoCoreFiles) { EXPECT_EQ(OutputOf("ulimit -c"), "0\n"); }

TEST(RunProcessTest, StartsWithStandardSignalHandling) {
  struct sigaction ignore = {};
  struct sigaction saved = {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGPIPE, &ignore, &saved), 0);
  sigset_t blocked;
  sigset_t saved_mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &blocked, &saved_mask), 0);
  const std::string output = OutputOf("grep -E '^Sig(Ign|Blk)' /proc/self/status");
  pthread_sigmask(SIG_SETMASK, &saved_mask, nullptr);
  sigaction(SIGPIPE, &saved, nullptr);
  EXPECT_EQ(output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(RunProcessTest, LeavesTheCallersSignalMaskAlone) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ASSERT_THAT(RunToEnd(Shell("true")), IsOk());
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int number = 1; number < NSIG; ++number) EXPECT_EQ(sigismember(&before, number), sigismember(&after, number));
}

TEST(RunProcessTest, IsTheLeaderOfAGroup) { EXPECT_EQ(OutputOf("[ $(ps -o pgid= -p $$) = $$ ] && echo yes"), "yes\n"); }

TEST(RunProcessTest, AProgramThatCannotRunIsAnErrorThatNamesIt) {
  ScratchDirectory scratch;
  ASSERT_THAT(Env::Posix().WriteFile(scratch / "plain", "text", 0644), IsOk());
  EXPECT_THAT(RunToEnd({.argv = {scratch / "plain"}}),
              HasError(absl::StatusCode::kPermissionDenied, HasSubstr("cannot run " + (scratch / "plain"))));
  EXPECT_THAT(RunToEnd({.argv = {scratch / "no"}}),
              HasError(absl::StatusCode::kNotFound, HasSubstr("cannot run " + (scratch / "no"))));
  ProcessSpec nowhere = Shell("true");
  nowhere.working_directory = scratch / "gone";
  EXPECT_THAT(RunToEnd(nowhere), HasError(absl::StatusCode::kNotFound,
                                          HasSubstr("cannot enter the working directory " + (scratch / "gone"))));
}

TEST(RunProcessTest, ATimeLimitKillsTheWholeGroup) {
  Lifeline grandchild;
  ProcessSpec spec = Shell("(exec 9>" + grandchild.path() + "; echo started; exec sleep 1000) & wait");
  // However slow the machine is, some limit is long enough for the grandchild to start.
  for (spec.timeout = milliseconds(50);; spec.timeout *= 2) {
    const auto result = RunToEnd(spec);
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(result->timed_out);
    EXPECT_EQ(result->signal, SIGKILL);
    EXPECT_GE(result->wall, spec.timeout);
    if (result->output == "started\n") break;
  }
  EXPECT_TRUE(grandchild.WaitUntilGone());
}

TEST(RunProcessTest, CancellingKillsAndReaps) {
  Cancellation cancellation;
  std::atomic<pid_t> pid = 0;
  const auto result = Env::Posix().RunProcess(
      Shell("echo $$; exec sleep 1000"),
      [&](std::string_view text) {
        pid = std::atoi(std::string(text).c_str());
        cancellation.Cancel();
      },
      &cancellation);
  EXPECT_THAT(result, HasError(absl::StatusCode::kCancelled, HasSubstr("/bin/sh")));
  ASSERT_GT(pid, 0);
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// A program that gives back much memory ends long after it was killed, all the more if it is nice.
TEST(RunProcessTest, CancellingWaitsForTheEndOfDescendants) {
  Lifeline grandchild;
  Cancellation cancellation;
  ProcessSpec spec =
      Shell("exec 9>" + grandchild.path() +
            "; (text=$(head -c 100000000 /dev/zero | tr '\\0' x); echo ready; sleep 1000; :) & exec sleep 1000 9>&-");
  spec.niceness = 19;
  const auto result = Env::Posix().RunProcess(
      spec, [&](std::string_view) { cancellation.Cancel(); }, &cancellation);
  EXPECT_THAT(result, HasError(absl::StatusCode::kCancelled, HasSubstr("")));
  EXPECT_TRUE(grandchild.IsGone());
}

TEST(RunProcessTest, CancelledBeforeItStarts) {
  Cancellation cancellation;
  cancellation.Cancel();
  EXPECT_THAT(RunToEnd(Shell("exec sleep 1000"), &cancellation), HasError(absl::StatusCode::kCancelled, HasSubstr("")));
}

TEST(RunProcessTest, CancellingFromAnotherThread) {
  Cancellation cancellation;
  std::promise<void> started;
  std::thread canceller([&] {
    AwaitValue("the program's first output", started.get_future());
    cancellation.Cancel();
  });
  const auto result = Env::Posix().RunProcess(
      Shell("echo x; exec sleep 1000"), [&](std::string_view) { started.set_value(); }, &cancellation);
  EXPECT_THAT(result, HasError(absl::StatusCode::kCancelled, HasSubstr("")));
  canceller.join();
}

TEST(RunProcessTest, EndsWithTheProgramThoughAGrandchildHoldsThePipe) {
  Lifeline grandchild;
  const auto result = RunToEnd(Shell("exec 9>" + grandchild.path() + "; sleep 1000 & echo done"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(result->output, "done\n");
  EXPECT_TRUE(grandchild.WaitUntilGone());
}

TEST(RunProcessTest, AProgramThatClosesItsOutputIsStillWaitedFor) {
  ScratchDirectory scratch;
  const std::string go = scratch / "go";
  ASSERT_EQ(mkfifo(go.c_str(), 0600), 0);
  // Opening the pipe for writing waits until the program reads from it. By then, the program has closed its output.
  std::thread starter([&] { close(open(go.c_str(), O_WRONLY)); });
  const auto result = RunToEnd(Shell("exec >/dev/null 2>&1; read x < " + go + "; exit 4"));
  starter.join();
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 4);
}

// When a daemon is killed, its compilers die with it.
TEST(RunProcessTest, TheProgramDiesWithThisProcess) {
  Lifeline program;
  int output[2];
  ASSERT_EQ(pipe(output), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    const auto tell = [&](std::string_view text) {
      if (write(output[1], text.data(), text.size()) > 0) pause();
    };
    Env::Posix()
        .RunProcess(Shell("exec 9>" + program.path() + "; echo x; exec sleep 1000"), tell, nullptr)
        .IgnoreError();
    _exit(0);
  }
  char byte = 0;
  AwaitReadable("a program that runs", output[0]);
  EXPECT_EQ(read(output[0], &byte, 1), 1);
  kill(daemon, SIGKILL);
  waitpid(daemon, nullptr, 0);
  EXPECT_TRUE(program.WaitUntilGone());
  close(output[0]);
  close(output[1]);
}

TEST(RunProcessTest, ManyAtOnceFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 10; ++i) {
        const std::string text = StrCat(t, "-", i);
        EXPECT_EQ(OutputOf("echo " + text), text + "\n");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kernix
