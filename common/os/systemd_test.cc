// SPDX-License-Identifier: Apache-2.0
#include "common/os/systemd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include "common/os/unique_fd.h"
#include "tests/support/bound_socket.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

class SystemdTest : public testing::Test {
 protected:
  ~SystemdTest() override {
    for (const char* name : {"NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS"}) unsetenv(name);
  }
  void Pass(const std::string& pid, const std::string& count) {
    setenv("LISTEN_PID", pid.c_str(), 1);
    setenv("LISTEN_FDS", count.c_str(), 1);
  }
  ScratchDirectory scratch_;
};

TEST_F(SystemdTest, IsNotified) {
  const UniqueFd systemd = BoundSocket(scratch_ / "notify", SOCK_DGRAM);
  setenv("NOTIFY_SOCKET", (scratch_ / "notify").c_str(), 1);
  NotifySystemd("READY=1");
  char data[64];
  ASSERT_EQ(recv(systemd.get(), data, sizeof(data), MSG_DONTWAIT), 7);
  EXPECT_EQ(std::string(data, 7), "READY=1");
}

TEST_F(SystemdTest, IsNotifiedInTheAbstractNamespace) {
  const std::string name = "kernix-systemd-test-" + std::to_string(getpid());
  const UniqueFd systemd(socket(AF_UNIX, SOCK_DGRAM, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  name.copy(address.sun_path + 1, name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(bind(systemd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  NotifySystemd("STOPPING=1");
  char data[64];
  EXPECT_EQ(recv(systemd.get(), data, sizeof(data), MSG_DONTWAIT), 10);
}

TEST_F(SystemdTest, ThatIsNotThereIsNoHarm) {
  NotifySystemd("READY=1");
  for (const std::string& name : {scratch_ / "gone", std::string("relative"), std::string(200, '/')}) {
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    NotifySystemd("READY=1");
  }
}

TEST_F(SystemdTest, DescriptorsThatWerePassedAreTaken) {
  // Descriptor 3 may be in use here: save and restore it.
  UniqueFd saved(fcntl(kFirstPassedDescriptor, F_DUPFD_CLOEXEC, 64));
  const UniqueFd listener = BoundSocket(scratch_ / "s");
  ASSERT_EQ(dup2(listener.get(), kFirstPassedDescriptor), kFirstPassedDescriptor);
  Pass(std::to_string(getpid()), "1");
  EXPECT_EQ(TakePassedDescriptors(), 1);
  EXPECT_EQ(fcntl(kFirstPassedDescriptor, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(TakePassedDescriptors(), 0) << "the variables are gone";
  if (saved.ok()) {
    dup2(saved.get(), kFirstPassedDescriptor);
  } else if (listener.get() != kFirstPassedDescriptor) {
    close(kFirstPassedDescriptor);
  }
}

TEST_F(SystemdTest, DescriptorsOfAnotherProcessAreLeftAlone) {
  Pass(std::to_string(getpid() + 1), "1");
  EXPECT_EQ(TakePassedDescriptors(), 0);
  Pass(std::to_string(getpid()), "many");
  EXPECT_EQ(TakePassedDescriptors(), 0);
}

TEST_F(SystemdTest, AListeningUnixStreamSocketIsKnown) {
  const UniqueFd stream = BoundSocket(scratch_ / "s");
  EXPECT_FALSE(ListensAtUnixSocket(stream.get()));
  ASSERT_EQ(listen(stream.get(), 1), 0);
  EXPECT_TRUE(ListensAtUnixSocket(stream.get()));
  const UniqueFd packets = BoundSocket(scratch_ / "p", SOCK_SEQPACKET);
  ASSERT_EQ(listen(packets.get(), 1), 0);
  EXPECT_FALSE(ListensAtUnixSocket(packets.get()));
  const UniqueFd internet(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(listen(internet.get(), 1), 0);
  EXPECT_FALSE(ListensAtUnixSocket(internet.get()));
  const UniqueFd file(open((scratch_ / "f").c_str(), O_CREAT | O_RDWR, 0600));
  EXPECT_FALSE(ListensAtUnixSocket(file.get()));
  EXPECT_FALSE(ListensAtUnixSocket(-1));
}

}  // namespace
}  // namespace kernix
