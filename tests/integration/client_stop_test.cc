// SPDX-License-Identifier: Apache-2.0
//
// Client::Shutdown(): when it says that a daemon is gone, it is.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "common/os/unique_fd.h"
#include "tests/integration/client_world.h"
#include "tests/support/kernixd_process.h"

namespace kernix {
namespace {

class ClientStopTest : public ClientWorld {};

TEST_F(ClientStopTest, AfterAShutdownNobodyIsThere) {
  const auto client = MakeClient();
  ASSERT_TRUE(client->Info().ok());
  ASSERT_TRUE(client->Shutdown().ok());
  EXPECT_TRUE(absl::IsUnavailable(client->Info(/*start=*/false).status()));
  EXPECT_TRUE(absl::IsUnavailable(client->Shutdown()));
}

TEST_F(ClientStopTest, OneWhosePlaceAnotherTakesAtOnceIsGoneToo) {
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

// What systemd does for a socket unit.
UniqueFd ListenAt(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
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
