// SPDX-License-Identifier: Apache-2.0
#include "client/connection/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "common/base/paths.h"
#include "common/os/env.h"
#include "tests/support/need_right.h"

namespace kernix {
namespace {

using ::testing::HasSubstr;

class UnixSocketTest : public testing::Test {
 protected:
  UnixSocketTest() { directory_ = Env::Posix().CreateTempDirectory("/tmp/kernix-unix-socket-test-").value(); }
  ~UnixSocketTest() override { EXPECT_TRUE(Env::Posix().RemoveTree(directory_).ok()); }

  UniqueFd Listen(const std::string& path, int backlog) {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd.get(), backlog), 0);
    return fd;
  }

  std::string Path(const std::string& name) { return JoinPath(directory_, name); }

  std::string directory_;
};

TEST_F(UnixSocketTest, TellsWhoListens) {
  const UniqueFd listener = Listen(Path("s"), 1);
  const absl::StatusOr<PeerSocket> peer = ConnectUnix(Path("s"), geteuid());
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->pid, getpid());
  EXPECT_EQ(peer->uid, geteuid());
}

TEST_F(UnixSocketTest, NobodyThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ConnectUnix(Path("none"), geteuid()).status()));
  { const UniqueFd dead = Listen(Path("dead"), 1); }
  EXPECT_TRUE(absl::IsNotFound(ConnectUnix(Path("dead"), geteuid()).status()));
  ASSERT_TRUE(Env::Posix().WriteFile(Path("file"), "", 0600).ok());
  EXPECT_TRUE(absl::IsNotFound(ConnectUnix(Path("file"), geteuid()).status()));
}

TEST_F(UnixSocketTest, AFullQueueIsUnavailable) {
  const UniqueFd listener = Listen(Path("s"), 0);
  std::vector<PeerSocket> waiting;
  absl::Status status;
  while (status.ok() && waiting.size() < 100) {
    absl::StatusOr<PeerSocket> peer = ConnectUnix(Path("s"), geteuid());
    status = peer.status();
    if (peer.ok()) waiting.push_back(*std::move(peer));
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(UnixSocketTest, AListenerOfSomebodyElseIsRefusedByName) {
  KERNIX_NEED_ROOT("listening as somebody else takes root");
  constexpr uid_t kSomebodyElse = 4711;
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  ASSERT_EQ(seteuid(kSomebodyElse), 0);
  const UniqueFd listener = Listen(Path("s"), 1);
  ASSERT_EQ(seteuid(0), 0);
  const absl::Status status = ConnectUnix(Path("s"), geteuid()).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("served by uid 4711"));
}

TEST_F(UnixSocketTest, TrustsItselfAndRootAlone) {
  EXPECT_TRUE(IsTrustedUser(4711, 4711));
  EXPECT_TRUE(IsTrustedUser(0, 4711));
  EXPECT_FALSE(IsTrustedUser(4712, 4711));
}

TEST_F(UnixSocketTest, APathThatIsTooLongIsRefusedWithItsLength) {
  const absl::Status status = ConnectUnix("/" + std::string(107, 'x'), geteuid()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("108 bytes"));
}

TEST_F(UnixSocketTest, NoSocketTakesThePlaceOfAClosedStandardStream) {
  const UniqueFd listener = Listen(Path("s"), 1);
  const std::string path = Path("s");
  const pid_t child = fork();
  if (child == 0) {
    for (int fd = 0; fd < 4; ++fd) close(fd);
    const auto pair = MakeSocketPair();
    const auto peer = ConnectUnix(path, geteuid());
    _exit(pair.ok() && peer.ok() && pair->first.get() > 3 && pair->second.get() > 3 && peer->fd.get() > 3 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(UnixSocketTest, ASocketPairIsConnected) {
  auto sockets = MakeSocketPair();
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  char byte = 'x';
  ASSERT_EQ(write(sockets->first.get(), &byte, 1), 1);
  byte = 0;
  EXPECT_EQ(read(sockets->second.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

}  // namespace
}  // namespace kernix
