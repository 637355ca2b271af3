// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/listener.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/paths.h"
#include "daemon/transport/local_user.h"
#include "tests/support/fault_env.h"
#include "tests/support/need_right.h"
#include "tests/support/other_groups.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using ::testing::HasSubstr;

Env& TheEnv() { return Env::Posix(); }

class ListenerTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Listener>> Bind() { return Listener::Bind(TheEnv(), {.path = socket_}); }

  mode_t ModeOfSocket() { return TheEnv().Stat(socket_)->mode; }

  // Leaves what a killed daemon leaves: a file that is bound to nothing.
  void LeaveStaleSocket(const std::string& path) {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress address(path);
    ASSERT_EQ(bind(fd.get(), address.get(), address.size()), 0);
  }

  ScratchDirectory scratch_;
  const std::string socket_ = scratch_ / "k.sock";
};

TEST_F(ListenerTest, ListensForItsOwnerOnly) {
  const auto listener = Bind();
  ASSERT_THAT(listener, IsOk());
  EXPECT_EQ(ModeOfSocket(), 0600u);
  EXPECT_THAT(ConnectTo(socket_), IsOk());
}

TEST_F(ListenerTest, RemovesItsFileAtTheEnd) {
  Bind()->reset();
  EXPECT_THAT(ConnectTo(socket_), HasError(absl::StatusCode::kNotFound, testing::_));
}

TEST_F(ListenerTest, NoticesThatItsFileIsGone) {
  const auto listener = Bind();
  EXPECT_EQ((*listener)->file().FirstLost(), "");
  ASSERT_EQ(chmod(socket_.c_str(), 0666), 0);
  EXPECT_EQ((*listener)->file().FirstLost(), "");
  ASSERT_THAT(TheEnv().RemoveFile(socket_), IsOk());
  EXPECT_EQ((*listener)->file().FirstLost(), socket_);
}

TEST_F(ListenerTest, LeavesTheFileThatAnotherHasPutInItsPlace) {
  auto first = Bind();
  ASSERT_THAT(TheEnv().RemoveFile(socket_), IsOk());
  const auto second = Bind();
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ((*first)->file().FirstLost(), socket_);
  first->reset();
  EXPECT_THAT(ConnectTo(socket_), IsOk());
}

TEST_F(ListenerTest, ASharedOneLetsAGroupIn) {
  const struct group* own = getgrgid(getegid());
  ASSERT_NE(own, nullptr);
  const auto listener = Listener::Bind(TheEnv(), {.path = socket_, .for_group = true, .group = own->gr_name});
  ASSERT_THAT(listener, IsOk());
  EXPECT_EQ(ModeOfSocket(), 0660u);
}

TEST_F(ListenerTest, ASharedOneBelongsToItsGroup) {
  KERNIX_NEED_ROOT("only root can give a file to a group that it is not in");
  const OtherGroup other = AGroupThatIsNotOurs();
  const auto listener = Listener::Bind(TheEnv(), {.path = socket_, .for_group = true, .group = other.name});
  ASSERT_THAT(listener, IsOk());
  struct stat info = {};
  ASSERT_EQ(stat(socket_.c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, other.gid);
  EXPECT_EQ(info.st_mode & 07777, 0660u);
}

TEST_F(ListenerTest, AnUnknownGroupIsNamed) {
  const auto listener = Listener::Bind(TheEnv(), {.path = socket_, .for_group = true, .group = "no-such-group"});
  EXPECT_THAT(listener, HasError(absl::StatusCode::kInvalidArgument, HasSubstr("no-such-group")));
  EXPECT_FALSE(TheEnv().Stat(socket_).ok());
}

// People wait for the file, and then connect.
TEST_F(ListenerTest, WhoeverSeesTheFileCanConnect) {
  FaultEnv env(TheEnv());
  bool was_ready = false;
  env.Inject({.operation = Operation::kRename, .match = socket_, .before = [&] {
                was_ready = !TheEnv().Stat(socket_).ok() && ConnectTo(StrCat(socket_, "~")).ok();
              }});
  const auto listener = Listener::Bind(env, {.path = socket_});
  ASSERT_THAT(listener, IsOk());
  EXPECT_TRUE(was_ready);
  EXPECT_EQ(TheEnv().ListDirectory(scratch_.path())->size(), 1u);
}

TEST_F(ListenerTest, OneThatCannotGetItsNameLeavesNothing) {
  FaultEnv env(TheEnv());
  env.Inject(Forbidden(Operation::kRename, socket_));
  EXPECT_THAT(Listener::Bind(env, {.path = socket_}), HasError(absl::StatusCode::kPermissionDenied, testing::_));
  EXPECT_EQ(TheEnv().ListDirectory(scratch_.path())->size(), 0u);
}

TEST_F(ListenerTest, TakesThePlaceOfADeadDaemon) {
  LeaveStaleSocket(socket_);
  LeaveStaleSocket(StrCat(socket_, "~"));  // it died before it listened
  EXPECT_THAT(ConnectTo(socket_), HasError(absl::StatusCode::kNotFound, testing::_));
  const auto listener = Bind();
  EXPECT_THAT(listener, IsOk());
  EXPECT_THAT(ConnectTo(socket_), IsOk());
}

TEST_F(ListenerTest, LeavesWhatIsNoSocket) {
  ASSERT_THAT(TheEnv().WriteFile(socket_, "precious", 0600), IsOk());
  EXPECT_THAT(Bind(), HasError(absl::StatusCode::kFailedPrecondition, HasSubstr("is not a socket")));
  EXPECT_EQ(TheEnv().ReadFile(socket_).value(), "precious");
}

TEST_F(ListenerTest, LeavesAPipe) {
  ASSERT_EQ(mkfifo(socket_.c_str(), 0600), 0);
  EXPECT_THAT(Bind(), HasError(absl::StatusCode::kFailedPrecondition, HasSubstr("is not a socket")));
  EXPECT_THAT(TheEnv().Stat(socket_), IsOk());
}

// Nor one of another user, at which this one may not ask whether somebody listens.
TEST_F(ListenerTest, LeavesASocketThatGivesNoAnswer) {
  const UniqueFd other(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress address(socket_);
  ASSERT_EQ(bind(other.get(), address.get(), address.size()), 0);
  const auto listener = Bind();
  EXPECT_THAT(std::string(listener.status().message()), HasSubstr("choose another --socket"));
  EXPECT_THAT(TheEnv().Stat(socket_), IsOk());
}

TEST_F(ListenerTest, LeavesTheSocketOfAnotherProgram) {
  const auto other = Bind();
  EXPECT_THAT(Bind(), HasError(absl::StatusCode::kAlreadyExists, HasSubstr(StrCat("(process ", getpid(), ")"))));
  EXPECT_THAT(ConnectTo(socket_), IsOk());
}

TEST_F(ListenerTest, ALongPathIsRefusedInWords) {
  const std::string path = scratch_ / std::string(200, 'x');
  EXPECT_THAT(Listener::Bind(TheEnv(), {.path = path}),
              HasError(absl::StatusCode::kInvalidArgument, HasSubstr("the system allows at most 107")));
  EXPECT_THAT(ClaimSocket(TheEnv(), path, Duration{0}),
              HasError(absl::StatusCode::kInvalidArgument, HasSubstr("--socket")));
}

TEST_F(ListenerTest, TheLongestPathWorks) {
  const std::string path = scratch_ / std::string(kMaxSocketPath - scratch_.path().size() - 1, 'x');
  ASSERT_EQ(path.size(), kMaxSocketPath);
  const auto listener = Listener::Bind(TheEnv(), {.path = path});
  ASSERT_THAT(listener, IsOk());
  EXPECT_THAT(ConnectTo(path), IsOk());
}

TEST(LockPathOf, IsTheOneOfTheRunFolder) {
  EXPECT_EQ(LockPathOf("/run/kernix/kernixd.sock"), "/run/kernix/kernixd.lock");
  EXPECT_EQ(LockPathOf("/run/kernix/k"), "/run/kernix/k.lock");
}

TEST_F(ListenerTest, ASocketIsClaimedOnce) {
  auto lock = ClaimSocket(TheEnv(), socket_, Duration{0});
  ASSERT_THAT(lock, IsOk());
  const auto listener = Bind();
  EXPECT_THAT(ClaimSocket(TheEnv(), socket_, std::chrono::hours(1)),
              HasError(absl::StatusCode::kAlreadyExists,
                       HasSubstr(StrCat("kernixd (process ", getpid(), ") already serves ", socket_))));
}

TEST_F(ListenerTest, OneThatHoldsTheLockAndDoesNotAnswerIsWaitedFor) {
  auto lock = ClaimSocket(TheEnv(), socket_, Duration{0});
  ASSERT_THAT(lock, IsOk());
  EXPECT_THAT(ClaimSocket(TheEnv(), socket_, Duration{0}),
              HasError(absl::StatusCode::kAlreadyExists, HasSubstr("does not answer")));
  lock->reset();
  EXPECT_THAT(ClaimSocket(TheEnv(), socket_, Duration{0}), IsOk());
}

// The child takes over its parent's listening socket, as if from systemd, and checks which process its own client sees.
// Returns an exit code.
int TakeFromSystemd(int listener, const std::string& path) {
  if (dup2(listener, 3) != 3 && listener != 3) return 2;
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
  const auto taken = Listener::FromSystemd(TheEnv());
  if (!taken.ok() || *taken == nullptr) return 3;
  const absl::StatusOr<UniqueFd> client = ConnectTo(path);
  if (!client.ok()) return 4;
  const absl::StatusOr<Peer> peer = PeerOf(client->get());
  return peer.ok() && peer->pid == getpid() ? 0 : 5;
}

TEST_F(ListenerTest, BehindSystemdsSocketClientsMeetTheDaemon) {
  const auto systemds = Bind();
  ASSERT_THAT(systemds, IsOk());
  const pid_t child = fork();
  if (child == 0) _exit(TakeFromSystemd((*systemds)->fd(), socket_));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ListenerTest, WithoutSystemdThereIsNothingToTake) {
  const auto listener = Listener::FromSystemd(TheEnv());
  ASSERT_THAT(listener, IsOk());
  EXPECT_EQ(*listener, nullptr);
}

}  // namespace
}  // namespace kernix::server
