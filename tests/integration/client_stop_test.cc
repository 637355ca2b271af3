// SPDX-License-Identifier: Apache-2.0
//
// Client::Shutdown(): when it says that a daemon is gone, it is.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "common/os/folders.h"
#include "common/os/unique_fd.h"
#include "tests/integration/client_world.h"
#include "tests/support/bound_socket.h"
#include "tests/support/kernixd_process.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ClientStopTest : public ClientWorld {};

TEST_F(ClientStopTest, AfterAShutdownNobodyIsThere) {
  const auto client = MakeClient();
  ASSERT_TRUE(client->Info().ok());
  ASSERT_TRUE(client->Shutdown().ok());
  EXPECT_TRUE(absl::IsUnavailable(client->Info(/*start=*/false).status()));
  EXPECT_TRUE(absl::IsUnavailable(client->Shutdown()));
}

TEST_F(ClientStopTest, OneWhoseRunFolderAnotherTakesAtOnceIsGoneToo) {
  const auto client = MakeClient();
  const int64_t first = client->Info()->pid;
  std::atomic<bool> stop{false};
  std::thread others([this, &stop] {
    const auto other = MakeClient();
    while (!stop) static_cast<void>(other->Info());
  });
  const absl::Status status = client->Shutdown();
  stop = true;
  others.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_NE(client->Info()->pid, first);
}

// A process that holds the store of the test as a kernixd does that nobody can connect to.
class Holder {
 public:
  Holder(const std::string& store, const std::string& socket) : child_(fork()) {
    const std::string lock = store + "/private/lock";
    if (child_ == 0) {
      alarm(60);
      const int fd = open(lock.c_str(), O_RDWR | O_CREAT, 0600);
      const bool holds = flock(fd, LOCK_EX) == 0 && NoteStoreHolder(Env::Posix(), store, socket).ok();
      while (holds) pause();
      _exit(1);
    }
    EXPECT_TRUE(Eventually([&] { return ProcessOfStoreHolder(Env::Posix(), store) == child_; }));
  }
  ~Holder() {
    if (!ended_) kill(child_, SIGKILL);
    if (!ended_) AwaitEnd();
  }
  // The signal that ended it.
  int AwaitEnd() {
    ended_ = true;
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  std::string process() const { return "process " + std::to_string(child_); }

 private:
  const pid_t child_;
  bool ended_ = false;
};

TEST_F(ClientStopTest, OneThatNobodyCanConnectToIsNamedAndStoppedByItsStore) {
  ASSERT_TRUE(Env::Posix().CreateDirectories(Path("store") + "/private", 0700).ok());
  for (const std::string& socket : {Path("gone.sock"), RunFolderOfStore().socket, std::string()}) {
    Holder holder(Path("store"), socket);
    const absl::Status status = MakeClient()->Info(/*start=*/false).status();
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(holder.process()), HasSubstr(Path("store")), HasSubstr("`kernixctl shutdown`")));
    std::thread reaper([&] { EXPECT_EQ(holder.AwaitEnd(), SIGTERM); });
    EXPECT_TRUE(MakeClient()->Shutdown().ok());
    reaper.join();
    EXPECT_TRUE(absl::IsUnavailable(MakeClient()->Shutdown()));
  }
}

TEST_F(ClientStopTest, OneThatHangsIsNamedAndEnded) {
  ClientOptions options;
  options.call_timeout = std::chrono::hours(1);
  const auto client = MakeClient(options);
  const auto pid = static_cast<pid_t>(client->Info()->pid);
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  const auto metrics = client->Ask<v1::GetMetricsResponse>("GetMetrics", v1::GetMetricsRequest());
  EXPECT_THAT(std::string(metrics.status().message()), HasSubstr("process " + std::to_string(pid)));
  EXPECT_TRUE(client->Shutdown().ok());
  pollfd ended{process.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 0), 1) << "it still runs";
  EXPECT_TRUE(LoadKernel(*MakeClient(), 1).ok());
}

// It says what kernixd has said, and serves without the store.
TEST_F(ClientStopTest, ALoadDoesNotWaitForOneThatNobodyCanConnectTo) {
  ASSERT_TRUE(Env::Posix().CreateDirectories(Path("store") + "/private", 0700).ok());
  Holder holder(Path("store"), Path("gone.sock"));
  std::string warnings;
  LoadOptions options;
  options.callbacks.warning = [&](std::string_view text) { warnings += text; };
  const auto module = LoadKernel(*MakeClient(), 1, options);  // far from its time limit of two minutes
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings, AllOf(HasSubstr("exit code 4 (another kernixd uses the store)"), HasSubstr(holder.process()),
                              HasSubstr("`kernixctl shutdown`")));
}

TEST_F(ClientStopTest, AProcessThatIsOnlyNotedIsNotTheHolder) {
  ASSERT_TRUE(Env::Posix().CreateDirectories(Path("store") + "/private", 0700).ok());
  ASSERT_TRUE(NoteStoreHolder(Env::Posix(), Path("store"), Path("gone.sock")).ok());
  ASSERT_TRUE(Env::Posix().WriteFile(Path("store/private/lock"), "", 0600).ok());  // which nobody has open
  EXPECT_EQ(ProcessOfStoreHolder(Env::Posix(), Path("store")), std::nullopt);
  EXPECT_TRUE(absl::IsUnavailable(MakeClient()->Shutdown()));
}

// What systemd does for a socket unit.
UniqueFd ListenAt(const std::string& path) {
  UniqueFd fd = BoundSocket(path);
  EXPECT_EQ(listen(fd.get(), 16), 0);
  return fd;
}

TEST_F(ClientStopTest, OneBehindASocketThatStaysIsGoneWhenItsProcessIs) {
  const KernixdPlace place;
  const UniqueFd listener = ListenAt(place.socket());
  auto daemon = KernixdProcess::Start(
      place, {.program = KERNIXD_PROGRAM, .inherited_fd = listener.get(), .socket_activation = true});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  ASSERT_TRUE((*daemon)->AwaitReady().ok());

  ClientOptions options;
  options.address = place.socket();
  const absl::Status status = MakeClient(options)->Shutdown();
  EXPECT_TRUE(status.ok()) << status;
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, (*daemon)->pid(), &info, WEXITED | WNOHANG | WNOWAIT), 0);
  EXPECT_EQ(info.si_pid, (*daemon)->pid()) << "it still runs";
}

}  // namespace
}  // namespace kernix
