// SPDX-License-Identifier: Apache-2.0
//
// Runs twice: with our functions, and with those of libsystemd that they replace.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/os/unique_fd.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

// A Unix socket of `type` that is bound to `path`.
UniqueFd BoundSocket(int type, const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, type, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << path;
  return fd;
}

class SdDaemonTest : public testing::Test {
 protected:
  ~SdDaemonTest() override {
    for (const char* name : {"NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS"}) unsetenv(name);
  }
  void Pass(const std::string& pid, const std::string& count) {
    setenv("LISTEN_PID", pid.c_str(), 1);
    setenv("LISTEN_FDS", count.c_str(), 1);
  }
  ScratchDirectory scratch_;
};

TEST_F(SdDaemonTest, NotifiesTheManager) {
  const UniqueFd manager = BoundSocket(SOCK_DGRAM, scratch_ / "notify");
  setenv("NOTIFY_SOCKET", (scratch_ / "notify").c_str(), 1);
  EXPECT_GT(sd_notify(0, "READY=1"), 0);
  char data[64];
  ASSERT_EQ(recv(manager.get(), data, sizeof(data), 0), 7);
  EXPECT_EQ(std::string(data, 7), "READY=1");
  EXPECT_GT(sd_notify(1, "STOPPING=1"), 0);
  EXPECT_EQ(getenv("NOTIFY_SOCKET"), nullptr);
}

TEST_F(SdDaemonTest, WithoutAManagerNothingHappens) { EXPECT_EQ(sd_notify(0, "READY=1"), 0); }

TEST_F(SdDaemonTest, AManagerThatIsGoneIsAnError) {
  setenv("NOTIFY_SOCKET", (scratch_ / "gone").c_str(), 1);
  EXPECT_EQ(sd_notify(0, "READY=1"), -ENOENT);
  setenv("NOTIFY_SOCKET", "relative", 1);
  EXPECT_LT(sd_notify(0, "READY=1"), 0);
}

TEST_F(SdDaemonTest, TakesDescriptorsThatWerePassedToThisProcess) {
  // Descriptor 3 may be in use here: save and restore it.
  UniqueFd saved(fcntl(SD_LISTEN_FDS_START, F_DUPFD_CLOEXEC, 64));
  const UniqueFd listener = BoundSocket(SOCK_STREAM, scratch_ / "s");
  ASSERT_EQ(dup2(listener.get(), SD_LISTEN_FDS_START), SD_LISTEN_FDS_START);
  Pass(std::to_string(getpid()), "1");
  EXPECT_EQ(sd_listen_fds(1), 1);
  EXPECT_EQ(fcntl(SD_LISTEN_FDS_START, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(sd_listen_fds(0), 0);  // the variables are gone
  if (saved.ok()) {
    dup2(saved.get(), SD_LISTEN_FDS_START);
  } else if (listener.get() != SD_LISTEN_FDS_START) {
    close(SD_LISTEN_FDS_START);
  }
}

TEST_F(SdDaemonTest, LeavesThoseOfAnotherProcessAlone) {
  Pass(std::to_string(getpid() + 1), "1");
  EXPECT_EQ(sd_listen_fds(0), 0);
}

TEST_F(SdDaemonTest, KnowsAListeningUnixStreamSocket) {
  const UniqueFd stream = BoundSocket(SOCK_STREAM, scratch_ / "s");
  const UniqueFd datagram = BoundSocket(SOCK_DGRAM, scratch_ / "d");
  const UniqueFd internet(socket(AF_INET, SOCK_STREAM, 0));
  const UniqueFd file(open((scratch_ / "f").c_str(), O_CREAT | O_RDWR, 0600));
  EXPECT_EQ(sd_is_socket_unix(stream.get(), SOCK_STREAM, 1, nullptr, 0), 0);
  EXPECT_EQ(sd_is_socket_unix(stream.get(), SOCK_STREAM, 0, nullptr, 0), 1);
  ASSERT_EQ(listen(stream.get(), 1), 0);
  EXPECT_EQ(sd_is_socket_unix(stream.get(), SOCK_STREAM, 1, nullptr, 0), 1);
  EXPECT_EQ(sd_is_socket_unix(datagram.get(), SOCK_STREAM, -1, nullptr, 0), 0);
  EXPECT_EQ(sd_is_socket_unix(datagram.get(), 0, -1, nullptr, 0), 1);
  EXPECT_EQ(sd_is_socket_unix(internet.get(), SOCK_STREAM, -1, nullptr, 0), 0);
  EXPECT_EQ(sd_is_socket_unix(file.get(), SOCK_STREAM, -1, nullptr, 0), 0);
  EXPECT_EQ(sd_is_socket_unix(-1, SOCK_STREAM, -1, nullptr, 0), -EBADF);
}

}  // namespace
}  // namespace kernix
