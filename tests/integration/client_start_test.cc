// SPDX-License-Identifier: Apache-2.0
//
// How a client comes to a daemon.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <thread>

#include "client/connection/daemon_process.h"
#include "client/connection/daemon_starter.h"
#include "client/connection/endpoint.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "common/os/unique_fd.h"
#include "common/wire/kernixd_exit.h"
#include "tests/integration/client_world.h"
#include "tests/support/await.h"
#include "tests/support/find_tools.h"
#include "tests/support/need_right.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class ClientStartTest : public ClientWorld {};

TEST_F(ClientStartTest, ADaemonIsStartedOnceAndStays) {
  const auto client = MakeClient();
  EXPECT_TRUE(absl::IsUnavailable(client->Info(/*start=*/false).status()));
  const absl::StatusOr<DaemonInfo> info = client->Info();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->build_id, BuildId());
  EXPECT_EQ(info->store_directory, Path("store"));
  EXPECT_EQ(info->address, "unix:" + RunFolderOfStore().socket);
  EXPECT_EQ(MakeClient()->Info(/*start=*/false)->pid, info->pid);
}

// As a user's shell and their cron jobs.
TEST_F(ClientStartTest, ProcessesWithAndWithoutARuntimeDirectoryShareTheDaemonOfTheStore) {
  const RunFolder first = RunFolderOfStore();
  const absl::StatusOr<DaemonInfo> info = MakeClient()->Info();
  ASSERT_TRUE(info.ok()) << info.status();
  ASSERT_EQ(mkdir(Path("elsewhere").c_str(), 0700), 0);
  SetVariable("XDG_RUNTIME_DIR", Path("elsewhere"));
  ASSERT_NE(RunFolderOfStore().socket, first.socket);
  const auto client = MakeClient();
  const absl::StatusOr<DaemonInfo> other = client->Info();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->pid, info->pid);
  EXPECT_EQ(other->address, "unix:" + first.socket);
  EXPECT_TRUE(LoadKernel(*client, 1).ok());
  EXPECT_TRUE(LoadKernel(*client, 1, {.force_rebuild = true}).ok());
  EXPECT_EQ(RunProgram({CLIENT_PROBE}).output, std::to_string(info->pid));
  EXPECT_FALSE(Env::Posix().Stat(RunFolderOfStore().socket).ok()) << "no second one was started";

  ASSERT_TRUE(client->Shutdown().ok());
  const absl::StatusOr<DaemonInfo> next = client->Info();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_NE(next->pid, info->pid);
  EXPECT_EQ(next->address, "unix:" + RunFolderOfStore().socket) << "the next one lies where the client looks first";
}

TEST_F(ClientStartTest, AClientThatStartsNoDaemonLeavesNoFolder) {
  ASSERT_TRUE(absl::IsUnavailable(MakeClient()->Info(/*start=*/false).status()));
  EXPECT_FALSE(Env::Posix().Stat(Path("kernix")).ok());

  ASSERT_TRUE(MakeClient()->Info().ok());
  ASSERT_EQ(mkdir(Path("elsewhere").c_str(), 0700), 0);
  SetVariable("XDG_RUNTIME_DIR", Path("elsewhere"));
  const auto client = MakeClient();
  EXPECT_TRUE(LoadKernel(*client, 1).ok());
  EXPECT_TRUE(client->Shutdown().ok());
  EXPECT_FALSE(Env::Posix().Stat(Path("elsewhere/kernix")).ok()) << "the daemon had another place";
}

TEST_F(ClientStartTest, AKernixdThatFindsItsStoreTakenSaysWhereTheOtherListens) {
  ASSERT_TRUE(MakeClient()->Info().ok());
  const ProgramOutcome outcome = RunProgram(
      {"/bin/sh", "-c",
       StrCat(KERNIXD_PROGRAM, " --store-directory ", Path("store"), " --socket ", Path("other.sock"), " 2>&1")});
  EXPECT_EQ(outcome.exit_code, kExitAlreadyRunning);
  EXPECT_THAT(outcome.output, HasSubstr("at " + RunFolderOfStore().socket));
}

TEST_F(ClientStartTest, TwoHundredProcessesAtOnceGetOneDaemon) {
  constexpr int kClients = 200;
  std::vector<ProgramOutcome> outcomes(kClients);
  std::vector<std::thread> threads;
  for (ProgramOutcome& outcome : outcomes) threads.emplace_back([&outcome] { outcome = RunProgram({CLIENT_PROBE}); });
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> daemons;
  for (const ProgramOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 0);
    daemons.insert(outcome.output);
  }
  EXPECT_EQ(daemons, std::set<std::string>{std::to_string(MakeClient()->Info(/*start=*/false)->pid)});
}

TEST_F(ClientStartTest, TheDaemonInheritsNothing) {
  SetVariable("LD_PRELOAD_OF_THE_CLIENT", "1");
  SetVariable("CPATH", "/somewhere");
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);  // without close-on-exec
  const UniqueFd read_end(pipe_fds[0]);
  const UniqueFd write_end(pipe_fds[1]);
  const absl::StatusOr<DaemonInfo> info = MakeClient()->Info();
  ASSERT_TRUE(info.ok()) << info.status();

  const std::string proc = "/proc/" + std::to_string(info->pid);
  const std::filesystem::path our_pipe = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(pipe_fds[0]));
  for (const auto& entry : std::filesystem::directory_iterator(proc + "/fd")) {
    std::error_code gone;
    EXPECT_NE(std::filesystem::read_symlink(entry.path(), gone), our_pipe);
  }
  EXPECT_EQ(std::filesystem::read_symlink(proc + "/cwd"), "/");
  EXPECT_EQ(getsid(static_cast<pid_t>(info->pid)), info->pid);
  const std::string environment = Env::Posix().ReadFile(proc + "/environ").value();
  EXPECT_THAT(environment, HasSubstr("HOME="));
  EXPECT_THAT(environment, Not(HasSubstr("LD_PRELOAD_OF_THE_CLIENT")));
  EXPECT_THAT(environment, Not(HasSubstr("CPATH")));
}

TEST_F(ClientStartTest, TheDaemonIsNobodysChild) {
  EXPECT_EQ(ForkAndRun([this] {
              if (!MakeClient()->Info().ok()) return 1;
              return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD ? 0 : 2;
            }),
            0);
}

// As a program that leaves the collection of its children to the kernel.
TEST_F(ClientStartTest, ADaemonStartsWhereChildrenLeaveNoExitCode) {
  EXPECT_EQ(ForkAndRun([this] {
              signal(SIGCHLD, SIG_IGN);
              return MakeClient()->Info().ok() ? 0 : 1;
            }),
            0);
}

TEST_F(ClientStartTest, AModeThatShutsTheirOwnerOutDoesNotStay) {
  const auto mode_of = [](const std::string& path) { return Env::Posix().Stat(path)->mode; };
  ASSERT_EQ(ForkAndRun([this] {
              umask(0777);
              return MakeClient()->Info().ok() ? 0 : 1;
            }),
            0);
  const RunFolder place = RunFolderOfStore();
  EXPECT_EQ(mode_of(place.start_lock), 0600u);
  for (const std::string& folder : {Dirname(place.directory), place.directory}) {
    EXPECT_EQ(mode_of(folder), 0700u);
    ASSERT_EQ(chmod(folder.c_str(), 0), 0);
    EXPECT_TRUE(MakeClient()->Info(/*start=*/false).ok());
    EXPECT_EQ(mode_of(folder), 0700u);
  }
}

TEST_F(ClientStartTest, WhatCannotBeALogIsMovedAside) {
  const std::string log = RunFolderOfStore().log;
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  ASSERT_TRUE(MakeClient()->Info().ok());
  ASSERT_TRUE(MakeClient()->Shutdown().ok());
  EXPECT_EQ(Env::Posix().Stat(log)->type, FileType::kRegular);
  EXPECT_EQ(Env::Posix().Stat(log + ".1")->type, FileType::kOther);
  ASSERT_TRUE(Env::Posix().RemoveFile(log).ok());
  ASSERT_TRUE(Env::Posix().CreateDirectories(log + "/in-it").ok());
  EXPECT_TRUE(MakeClient()->Info().ok());
}

TEST_F(ClientStartTest, WhatLiesInPlaceOfTheLockOrTheSocketIsNamed) {
  const RunFolder place = RunFolderOfStore();
  ASSERT_EQ(mkdir(place.lock.c_str(), 0700), 0);
  const absl::Status locked = MakeClient()->Info().status();
  EXPECT_THAT(std::string(locked.message()), AllOf(HasSubstr(place.lock), HasSubstr("Remove what is there")));
  EXPECT_TRUE(LoadKernel(*MakeClient(), 1).ok()) << "by a private kernixd";
  ASSERT_EQ(rmdir(place.lock.c_str()), 0);
  ASSERT_EQ(symlink("nothing", place.socket.c_str()), 0);
  const absl::Status bound = MakeClient()->Info().status();
  EXPECT_THAT(std::string(bound.message()), AllOf(HasSubstr("is not a socket"), Not(HasSubstr("another kernixd"))));
  EXPECT_TRUE(LoadKernel(*MakeClient(), 1).ok());
}

// A job's first load may run on one core, under nice and ulimit; later ones of other programs do not.
TEST_F(ClientStartTest, TheDaemonShedsPrioritiesAndLimitsOfItsFirstClient) {
  constexpr rlim_t kHardFileSize = rlim_t{1} << 40;
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  ASSERT_EQ(ForkAndRun([this] {
              cpu_set_t one;
              CPU_ZERO(&one);
              CPU_SET(sched_getcpu(), &one);
              sched_setaffinity(0, sizeof one, &one);
              const rlimit address_space{rlim_t{3} << 30, RLIM_INFINITY};
              const rlimit time{1000, RLIM_INFINITY};
              const rlimit stack{1 << 20, RLIM_INFINITY};
              const rlimit file_size{rlim_t{1} << 30, kHardFileSize};
              setrlimit(RLIMIT_AS, &address_space);
              setrlimit(RLIMIT_CPU, &time);
              setrlimit(RLIMIT_STACK, &stack);
              setrlimit(RLIMIT_FSIZE, &file_size);
              umask(0777);
              errno = 0;
              if (geteuid() == 0 && nice(5) == -1 && errno != 0) return 1;
              return MakeClient()->Info().ok() ? 0 : 2;
            }),
            0);
  const auto pid = static_cast<pid_t>(MakeClient()->Info(/*start=*/false)->pid);
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(pid, sizeof all, &all), 0);
  EXPECT_GE(CPU_COUNT(&all), CPU_COUNT(&mine));
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(pid)), 0);
  const auto limit_of = [pid](__rlimit_resource resource) {
    rlimit limit{};
    EXPECT_EQ(prlimit(pid, resource, nullptr, &limit), 0);
    return limit.rlim_cur;
  };
  EXPECT_EQ(limit_of(RLIMIT_AS), RLIM_INFINITY);
  EXPECT_EQ(limit_of(RLIMIT_CPU), RLIM_INFINITY);
  EXPECT_EQ(limit_of(RLIMIT_STACK), rlim_t{8} << 20);
  EXPECT_EQ(limit_of(RLIMIT_FSIZE), kHardFileSize);
  EXPECT_THAT(Env::Posix().ReadFile(StrCat("/proc/", pid, "/status")).value(), HasSubstr("Umask:\t0022\n"));

  const auto status = MakeClient()->Ask<v1::GetStatusResponse>("GetStatus", v1::GetStatusRequest());
  EXPECT_THAT(status->inherited(), Contains(StrCat("at most ", uint64_t{kHardFileSize}, " bytes of each file")));
  EXPECT_THAT(Env::Posix().ReadFile(RunFolderOfStore().log).value(),
              HasSubstr(StrCat("warning inherited has=\"at most ", uint64_t{kHardFileSize}, " bytes of each file\"")));
}

TEST_F(ClientStartTest, ADaemonGoesAfterAQuarterOfAnHourUnlessToldOtherwise) {
  unsetenv("KERNIX_IDLE_TIMEOUT");
  ClientOptions options;
  options.kernixd = WriteScript("kernixd", "echo \"$@\" > " + Path("arguments") + "\nexit 1\n");
  EXPECT_FALSE(MakeClient(options)->Info().ok());
  EXPECT_THAT(Env::Posix().ReadFile(Path("arguments")).value(), HasSubstr(" --idle-timeout 15m"));
  SetVariable("KERNIX_IDLE_TIMEOUT", "60s");
  EXPECT_FALSE(MakeClient(options)->Info().ok());
  EXPECT_THAT(Env::Posix().ReadFile(Path("arguments")).value(), Not(HasSubstr("--idle-timeout")));
}

TEST_F(ClientStartTest, AnIdleDaemonGoes) {
  SetVariable("KERNIX_IDLE_TIMEOUT", "1s");
  ASSERT_TRUE(MakeClient()->Info().ok());
  // By its lock: a question would keep it.
  EXPECT_TRUE(Eventually([&] { return Env::Posix().TryLockFile(RunFolderOfStore().lock).ok(); }));
  EXPECT_TRUE(absl::IsUnavailable(MakeClient()->Info(/*start=*/false).status()));
}

TEST_F(ClientStartTest, ARuntimeDirectoryTooLongForASocketIsNoObstacle) {
  const std::string folder = Path(std::string(150, 'r'));
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  SetVariable("XDG_RUNTIME_DIR", folder);
  const auto client = MakeClient();
  const absl::StatusOr<DaemonInfo> info = client->Info();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->address, "unix:" + RunFolderOfStore().socket);
  EXPECT_LE(RunFolderOfStore().socket.size(), 107u);
  EXPECT_EQ(MakeClient()->Info(/*start=*/false)->pid, info->pid);
  EXPECT_TRUE(client->Shutdown().ok());
  EXPECT_TRUE(Env::Posix().RemoveTree(RunFolderOfStore().directory).ok());  // which is not below the test's own
}

// Between its start and its lock a daemon is invisible: who asks again then must find the start still under way.
TEST_F(ClientStartTest, AStartThatIsGivenUpIsNotMadeTwice) {
  const std::string starts = Path("starts");
  const std::string go = Path("go");
  ClientOptions options;
  options.start_timeout = std::chrono::minutes(2);
  options.kernixd = WriteScript("kernixd", "echo start >> " + starts + "\nuntil [ -e " + go +
                                               " ]; do :; done\nexec " KERNIXD_PROGRAM " \"$@\"\n");
  const ClientEnvironment environment;
  const Endpoint endpoint = CreateOwnEndpoint(environment, options).value();
  const auto greet = [](const PeerSocket&) { return absl::OkStatus(); };
  Caller given_up([&] {
    if (!Env::Posix().Stat(starts).ok()) return false;
    EXPECT_TRUE(Env::Posix().WriteFile(go, "", 0600).ok());
    return true;
  });
  EXPECT_FALSE(StartDaemon(environment, options, endpoint, std::nullopt, greet, given_up).ok());
  Caller caller;
  const absl::Status started = StartDaemon(environment, options, endpoint, std::nullopt, greet, caller);
  EXPECT_TRUE(started.ok()) << started;
  EXPECT_EQ(Env::Posix().ReadFile(starts).value(), "start\n");
}

// One that listens, and ends before it answers.
TEST_F(ClientStartTest, ADaemonThatEndsBeforeItAnswersIsStartedOnceAndSaysWhy) {
  KERNIX_NEED_PROGRAM(python, "python3");
  const std::string starts = Path("starts");
  ClientOptions options;
  options.start_timeout = std::chrono::minutes(2);
  options.kernixd = WriteScript("kernixd", "echo start >> " + starts + "\nexec " + python +
                                               " -c 'import socket, sys\n"
                                               "listener = socket.socket(socket.AF_UNIX)\n"
                                               "listener.bind(sys.argv[sys.argv.index(\"--socket\") + 1])\n"
                                               "listener.listen()\n"
                                               "listener.accept()\n"
                                               "sys.exit(\"no thread for lookups\")' \"$@\"\n");
  const auto info = MakeClient(options)->Info();
  EXPECT_EQ(KindOf(info.status()), v1::ErrorDetail::UNREACHABLE);
  EXPECT_THAT(std::string(info.status().message()), ::testing::HasSubstr("no thread for lookups"));
  EXPECT_EQ(Env::Posix().ReadFile(starts).value(), "start\n");
}

TEST_F(ClientStartTest, AFailureCarriesExitCodeAndLastWords) {
  ClientOptions options;
  options.kernixd = WriteScript("kernixd", "echo 'the disk is on fire' >&2; exit 3\n");
  const absl::Status status = MakeClient(options)->Info().status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(status.message()), HasSubstr("exit code 3 (it cannot use the store)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the disk is on fire"));
}

TEST_F(ClientStartTest, AMissingKernixdIsNamed) {
  ClientOptions options;
  options.kernixd = Path("nothing-here");
  const absl::Status status = MakeClient(options)->Info().status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::UNREACHABLE);
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.kernixd));
}

TEST_F(ClientStartTest, AStoreThatCannotBeUsedIsNamed) {
  ClientOptions options;
  options.store_directory = WriteScript("a-file", "");
  const absl::Status status = MakeClient(options)->Info().status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.store_directory));
}

// As in a container whose home is read-only.
TEST_F(ClientStartTest, WhereNoStoreCanBeMadeKernelsAreKeptInTheRunFolder) {
  const std::string home = Path("home");
  ASSERT_EQ(mkdir(home.c_str(), 0700), 0);
  const bool mounted = mount("tmpfs", home.c_str(), "tmpfs", MS_RDONLY, "size=1m,mode=0700") == 0;
  KERNIX_NEED_RIGHT(mounted, "no file system can be mounted here");
  std::string warnings;
  LoadOptions load;
  load.callbacks.warning = [&](std::string_view text) { warnings += text; };
  ClientOptions options;
  options.store_directory = home + "/.cache/kernix";
  const auto client = MakeClient(options);
  const auto module = LoadKernel(*client, 1, load);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT((*module)->path(), ::testing::StartsWith(Path("kernix/")));
  EXPECT_THAT(warnings, AllOf(HasSubstr(options.store_directory), HasSubstr("KERNIX_CACHE_DIR")));
  EXPECT_TRUE((*LoadKernel(*MakeClient(options), 1))->cache_hit()) << "all processes have it";
  EXPECT_TRUE(client->Shutdown().ok());
  EXPECT_EQ(umount2(home.c_str(), MNT_DETACH), 0);
}

TEST_F(ClientStartTest, ANamedAddressIsNeverStarted) {
  ClientOptions options;
  options.address = Path("nobody.sock");
  const absl::Status status = MakeClient(options)->Info().status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::UNREACHABLE);
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.address));
}

TEST_F(ClientStartTest, StoresHaveDaemonsOfTheirOwn) {
  ClientOptions options;
  options.store_directory = Path("other-store");
  const auto other = MakeClient(options);
  const absl::StatusOr<DaemonInfo> info = other->Info();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->store_directory, options.store_directory);
  EXPECT_NE(info->pid, MakeClient()->Info()->pid);
  EXPECT_TRUE(other->Shutdown().ok());
}

TEST_F(ClientStartTest, AListOfStoresIsReadInItsOrderAndItsFirstIsWritten) {
  const std::string filled = Path("filled");
  SetVariable("KERNIX_CACHE_DIR", filled);
  const auto filler = MakeClient();
  ASSERT_TRUE(LoadKernel(*filler, 1).ok());
  ASSERT_TRUE(filler->Shutdown().ok());
  SetVariable("KERNIX_CACHE_DIR", StrCat(Path("store"), ":", filled));
  ClientOptions options;
  for (const std::string& option : {std::string(), StrCat(Path("third"), ":", filled)}) {
    options.store_directory = option;
    const auto client = MakeClient(options);
    const auto hit = LoadKernel(*client, 1);
    ASSERT_TRUE(hit.ok()) << hit.status();
    EXPECT_TRUE((*hit)->cache_hit());
    EXPECT_THAT((*hit)->path(), ::testing::StartsWith(filled + "/"));
    const auto built = LoadKernel(*client, 2);
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_THAT((*built)->path(), ::testing::StartsWith(Path(option.empty() ? "store" : "third") + "/"));
    EXPECT_TRUE(client->Shutdown().ok());
  }
  SetVariable("KERNIX_CACHE_DIR", Path("store") + ":filled");
  EXPECT_THAT(std::string(Client::Create({}).status().message()), HasSubstr("KERNIX_CACHE_DIR must be an absolute"));
  SetVariable("KERNIX_CACHE_DIR", Path("store"));
}

TEST_F(ClientStartTest, KernixctlTellsWhetherADaemonRuns) {
  EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "status"}).exit_code, 3);
  ASSERT_TRUE(MakeClient()->Info().ok());
  const ProgramOutcome status = RunProgram({KERNIXCTL_PROGRAM, "status", "--json"});
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_THAT(status.output, HasSubstr("\"store_directory\": \"" + Path("store") + "\""));
  EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "shutdown"}).exit_code, 0);
  EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "status"}).exit_code, 3);
}

}  // namespace
}  // namespace kernix
