// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/accept_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "daemon/transport/listener.h"
#include "daemon/transport/local_user.h"
#include "tests/support/await.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using ::testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kResourceExhausted;

constexpr UserId kAlice{1};
constexpr UserId kBob{2};

int EnterAll(ConnectionQuota& quota, UserId user) {
  int count = 0;
  while (quota.Enter(user).ok()) ++count;
  return count;
}

TEST(ConnectionQuotaTest, AUserHasAsManyAsOneMayHave) {
  ConnectionQuota quota(3, 1000);
  EXPECT_EQ(EnterAll(quota, kAlice), 3);
  EXPECT_THAT(quota.Enter(kAlice), HasError(kRefused, HasSubstr("raise max_connections_per_user")));
  EXPECT_THAT(quota.Enter(kBob), IsOk());
  quota.Leave(kAlice);
  EXPECT_THAT(quota.Enter(kAlice), IsOk());
}

TEST(ConnectionQuotaTest, WithoutALimitADescriptorIsLeftForTheNextUser) {
  ConnectionQuota quota(0, 1000);
  EXPECT_EQ(EnterAll(quota, kAlice), 500);
  EXPECT_THAT(quota.Enter(kAlice), HasError(kRefused, HasSubstr("LimitNOFILE")));
  EXPECT_EQ(EnterAll(quota, kBob), 250);
  for (uint32_t id = 3; id < 10; ++id) EXPECT_GT(EnterAll(quota, UserId{id}), 0) << id;
}

TEST(ConnectionQuotaTest, WhoHasLeftDoesNotCount) {
  ConnectionQuota quota(0, 10);
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(quota.Enter(kAlice), IsOk());
    quota.Leave(kAlice);
  }
  EXPECT_EQ(EnterAll(quota, kBob), 5);
}

class IdleMonitorTest : public testing::Test {
 protected:
  bool StepAfter(Duration pause, const Activity& activity) {
    now_ += pause;
    return monitor_.Step(activity, now_);
  }

  MonotonicTime now_{std::chrono::hours(1)};
  IdleMonitor monitor_{Duration{1000}, now_};
};

TEST_F(IdleMonitorTest, EndsAfterTheTimeout) {
  EXPECT_FALSE(StepAfter(Duration{500}, {}));  // the first step: there may have been activity just before
  EXPECT_FALSE(StepAfter(Duration{999}, {}));
  EXPECT_TRUE(StepAfter(Duration{1}, {}));
}

TEST_F(IdleMonitorTest, NeverWhileSomethingRuns) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(StepAfter(Duration{5000}, {.running = 1}));
}

TEST_F(IdleMonitorTest, TheTimeBeginsWhenTheLastOneLeft) {
  EXPECT_FALSE(StepAfter(Duration{0}, {.running = 1}));
  EXPECT_FALSE(StepAfter(Duration{5000}, {}));  // the client may have left at any time until now
  EXPECT_FALSE(StepAfter(Duration{999}, {}));
  EXPECT_TRUE(StepAfter(Duration{1}, {}));
}

TEST_F(IdleMonitorTest, SeesWhatCameAndWentBetweenTwoLooks) {
  EXPECT_FALSE(StepAfter(Duration{0}, {}));
  EXPECT_FALSE(StepAfter(Duration{900}, {.running = 0, .started = 1}));
  EXPECT_FALSE(StepAfter(Duration{900}, {.running = 0, .started = 1}));
  EXPECT_FALSE(StepAfter(Duration{900}, {.running = 0, .started = 1}));
  EXPECT_TRUE(StepAfter(Duration{100}, {.running = 0, .started = 1}));
}

TEST_F(IdleMonitorTest, PausesUntilTheTimeoutAndNoLonger) {
  StepAfter(Duration{0}, {});
  StepAfter(Duration{0}, {});
  EXPECT_EQ(monitor_.Pause(now_ + Duration{400}), Duration{600});
  EXPECT_TRUE(StepAfter(monitor_.Pause(now_), {}));
}

TEST(IdleMonitor, WithoutTimeoutItIsNeverIdle) {
  const MonotonicTime start;
  IdleMonitor monitor(Duration{0}, start);
  EXPECT_FALSE(monitor.Step({}, start));
  EXPECT_FALSE(monitor.Step({}, start + std::chrono::hours(1000)));
}

// Records what the loop has handed over.
class Recorder : public AcceptHandler {
 public:
  // Refuses everybody who comes from now on, unless it is OK.
  void SetAdmission(absl::Status admission) {
    const MutexLock lock(mutex_);
    admission_ = std::move(admission);
  }

  absl::Status Admit(const Peer& peer) override {
    const MutexLock lock(mutex_);
    peer_ = peer;
    return admission_;
  }

  void Serve(UniqueFd fd, UserId user) override {
    const MutexLock lock(mutex_);
    connections_.emplace_back(std::move(fd), user);
    changed_.NotifyAll();
  }

  void RefuseStranger(UniqueFd /*connection*/, const absl::Status& /*reason*/) override {}
  void NoteRefusal() override {}
  void Refuse(UniqueFd /*connection*/, UserId /*user*/, const absl::Status& /*reason*/) override {}

  void Left(UserId user) override {
    const MutexLock lock(mutex_);
    left_.push_back(user);
  }

  void NoteAllClosed() {
    const MutexLock lock(mutex_);
    all_closed_ = true;
    changed_.NotifyAll();
  }

  // Waits for the next connection.
  std::pair<UniqueFd, UserId> Next() {
    const MutexLock lock(mutex_);
    AwaitChange("a connection", changed_, mutex_,
                [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !connections_.empty(); });
    auto connection = std::move(connections_.back());
    connections_.pop_back();
    return connection;
  }

  // The users who have left, in this order.
  std::vector<UserId> left() {
    const MutexLock lock(mutex_);
    return left_;
  }

  // The last peer.
  Peer peer() {
    const MutexLock lock(mutex_);
    return peer_;
  }

  void AwaitAllClosed() {
    const MutexLock lock(mutex_);
    AwaitChange("the end of all connections", changed_, mutex_,
                [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return all_closed_; });
    all_closed_ = false;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<UniqueFd, UserId>> connections_ ABSL_GUARDED_BY(mutex_);
  absl::Status admission_ ABSL_GUARDED_BY(mutex_);
  Peer peer_ ABSL_GUARDED_BY(mutex_);
  std::vector<UserId> left_ ABSL_GUARDED_BY(mutex_);
  bool all_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// Only a connection that sends something is handed over.
void Speak(const UniqueFd& fd) { ASSERT_EQ(send(fd.get(), "x", 1, MSG_NOSIGNAL), 1); }

// Blocks until the other end has closed.
bool ReadsEnd(const UniqueFd& fd) {
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  char byte = 0;
  AwaitReadable("the end of a connection", fd.get());
  return read(fd.get(), &byte, 1) == 0;
}

class AcceptLoopTest : public testing::Test {
 protected:
  std::unique_ptr<AcceptLoop> Start() { return Start(listener_->fd(), UniqueFd()); }
  std::unique_ptr<AcceptLoop> Start(int listener, UniqueFd connected) {
    return AcceptLoop::Start(Env::Posix(), listener, std::move(connected), ConnectionQuota(3, 1000), recorder_,
                             [this] { recorder_.NoteAllClosed(); })
        .value();
  }

  UniqueFd ConnectSilently() { return ConnectTo(socket_).value(); }
  UniqueFd Connect() {
    UniqueFd fd = ConnectSilently();
    Speak(fd);
    return fd;
  }

  ScratchDirectory scratch_;
  const std::string socket_ = scratch_ / "k.sock";
  const std::unique_ptr<Listener> listener_ = Listener::Bind(Env::Posix(), {.path = socket_}).value();
  Recorder recorder_;
};

TEST_F(AcceptLoopTest, KnowsWhoConnects) {
  const auto loop = Start();
  const UniqueFd client = Connect();
  const auto [connection, user] = recorder_.Next();
  EXPECT_EQ(recorder_.peer().pid, getpid());
  EXPECT_EQ(recorder_.peer().uid, geteuid());
  EXPECT_EQ(recorder_.peer().gid, getegid());
  EXPECT_EQ(user, UserId{geteuid()}) << "who it was taken for";
  EXPECT_EQ(fcntl(connection.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST_F(AcceptLoopTest, ClosesThoseItRefuses) {
  recorder_.SetAdmission(absl::PermissionDeniedError("not you"));
  const auto loop = Start();
  const UniqueFd client = ConnectSilently();
  EXPECT_TRUE(ReadsEnd(client));
  EXPECT_EQ(loop->activity().started, 0u);
}

TEST_F(AcceptLoopTest, HandsOverWhoSpeaksFirst) {
  const auto loop = Start();
  const UniqueFd silent = ConnectSilently();
  const UniqueFd other = Connect();  // accepted after the silent one
  char word = 0;
  auto served = recorder_.Next();
  EXPECT_EQ(recv(served.first.get(), &word, 1, MSG_DONTWAIT), 1);
  EXPECT_EQ(loop->activity().running, 2);
  served = recorder_.Next();  // after the silence has lasted long enough
  EXPECT_EQ(recv(served.first.get(), &word, 1, MSG_DONTWAIT), -1);
  Speak(silent);
  AwaitReadable("what the silent one says", served.first.get());
  EXPECT_EQ(recv(served.first.get(), &word, 1, 0), 1);
}

TEST_F(AcceptLoopTest, OneThatClosesBeforeItSendsIsNobodys) {
  const auto loop = Start();
  ConnectSilently().reset();
  recorder_.AwaitAllClosed();
  EXPECT_EQ(loop->activity().running, 0);
  EXPECT_EQ(loop->activity().started, 1u);
}

TEST_F(AcceptLoopTest, CountsWhatIsOpen) {
  const auto loop = Start();
  UniqueFd one = Connect();
  auto served_one = recorder_.Next();
  UniqueFd two = Connect();
  auto served_two = recorder_.Next();
  EXPECT_EQ(loop->activity().running, 2);
  EXPECT_EQ(loop->activity().started, 2u);
  one.reset();
  two.reset();
  recorder_.AwaitAllClosed();
  EXPECT_EQ(recorder_.left(), std::vector{UserId{geteuid()}}) << "a user leaves with the last connection";
  EXPECT_EQ(loop->activity().running, 0);
  EXPECT_EQ(loop->activity().started, 2u);
}

TEST_F(AcceptLoopTest, NoticesWhenTheServerCloses) {
  const auto loop = Start();
  const UniqueFd client = Connect();
  auto [connection, user] = recorder_.Next();
  char word = 0;
  ASSERT_EQ(recv(connection.get(), &word, 1, 0), 1);  // otherwise the client would see a reset
  shutdown(connection.get(), SHUT_RDWR);              // as gRPC does before it closes
  connection.reset();
  recorder_.AwaitAllClosed();
  EXPECT_TRUE(ReadsEnd(client));
}

TEST_F(AcceptLoopTest, TakesAConnectionThatIsThere) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd ours(ends[0]);
  Speak(ours);
  const auto loop = Start(-1, UniqueFd(ends[1]));
  const auto [connection, user] = recorder_.Next();
  EXPECT_EQ(recorder_.peer().pid, getpid());
  ours.reset();
  recorder_.AwaitAllClosed();
}

TEST_F(AcceptLoopTest, SaysSoWhenItsOnlyConnectionIsRefused) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  recorder_.SetAdmission(absl::PermissionDeniedError("no"));
  const auto loop = Start(-1, UniqueFd(ends[1]));
  recorder_.AwaitAllClosed();
  EXPECT_TRUE(ReadsEnd(ours));
}

TEST_F(AcceptLoopTest, AfterStopConnectionsStayOpen) {
  auto loop = Start();
  const UniqueFd client = Connect();
  const auto [connection, user] = recorder_.Next();
  loop->Stop();
  loop->Stop();
  ASSERT_EQ(write(connection.get(), "x", 1), 1);
  char byte = 0;
  fcntl(client.get(), F_SETFL, fcntl(client.get(), F_GETFL) & ~O_NONBLOCK);
  AwaitReadable("a byte for the client", client.get());
  EXPECT_EQ(read(client.get(), &byte, 1), 1);
}

// Leaves the process without a free descriptor during its lifetime.
class DescriptorShortage {
 public:
  DescriptorShortage() {
    getrlimit(RLIMIT_NOFILE, &saved_);
    const UniqueFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));  // the lowest free descriptor
    rlimit none = saved_;
    none.rlim_cur = static_cast<rlim_t>(next.get());
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~DescriptorShortage() { setrlimit(RLIMIT_NOFILE, &saved_); }
  DescriptorShortage(const DescriptorShortage&) = delete;
  DescriptorShortage& operator=(const DescriptorShortage&) = delete;

 private:
  rlimit saved_{};
};

// Captures what this process writes to stderr during its lifetime.
class StderrReader {
 public:
  StderrReader() : saved_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read_.reset(ends[0]);
    const UniqueFd write(ends[1]);
    dup2(write.get(), STDERR_FILENO);
  }
  ~StderrReader() { dup2(saved_.get(), STDERR_FILENO); }
  StderrReader(const StderrReader&) = delete;
  StderrReader& operator=(const StderrReader&) = delete;

  // Blocks until `text` has been written.
  void Await(std::string_view text) {
    std::array<char, 1024> buffer;
    while (said_.find(text) == std::string::npos) {
      AwaitReadable(std::string(text), read_.get());
      const ssize_t size = read(read_.get(), buffer.data(), buffer.size());
      ASSERT_GT(size, 0);
      said_.append(buffer.data(), size);
    }
  }

 private:
  const UniqueFd saved_;
  UniqueFd read_;
  std::string said_;
};

TEST_F(AcceptLoopTest, GoesOnAfterAShortageOfDescriptors) {
  const auto loop = Start();
  const UniqueFd waiting(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  {
    StderrReader log;
    const DescriptorShortage shortage;
    const SocketAddress address(socket_);
    ASSERT_EQ(connect(waiting.get(), address.get(), address.size()), 0);
    log.Await("accept_paused");
  }
  Speak(waiting);
  const auto [connection, user] = recorder_.Next();
  EXPECT_EQ(recorder_.peer().pid, getpid());
  EXPECT_EQ(loop->activity().running, 1);
}

// These connections have not sent anything yet.
TEST_F(AcceptLoopTest, WhoHasTooManyConnectionsMayComeBackWithFewer) {
  const auto loop = Start();
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(ConnectSilently());
  const UniqueFd refused = ConnectSilently();
  EXPECT_TRUE(ReadsEnd(refused));
  EXPECT_EQ(loop->activity().running, 3);
  clients.pop_back();
  Await("the end of a connection", [&] { return loop->activity().running == 2; });
  const UniqueFd next = Connect();
  recorder_.Next();
}

}  // namespace

}  // namespace kernix::server
