// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd: its command line, its socket, its exit codes, and the other ways to start it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/version.h"
#include "common/os/env.h"
#include "common/os/folders.h"
#include "common/wire/kernixd_exit.h"
#include "daemon/transport/listener.h"
#include "daemon/transport/local_user.h"
#include "tests/support/await.h"
#include "tests/support/kernixd_fixture.h"

namespace kernix::server {
namespace {

using ::testing::HasSubstr;

class KernixdStartTest : public KernixdTest {};

TEST_F(KernixdStartTest, BadUsage) {
  const auto daemon = LaunchWith({"--frobnicate"});
  EXPECT_EQ(daemon->AwaitExit(), kExitUsage);
  EXPECT_THAT(daemon->Log(), HasSubstr("kernixd --help"));
  EXPECT_EQ(LaunchWith({"--socket", "/tmp/" + std::string(200, 'x')})->AwaitExit(), kExitUsage);
}

TEST_F(KernixdStartTest, HelpAndVersion) {
  const auto help = Launch(KernixdCommand{.arguments = {"--help"}, .place_arguments = false});
  EXPECT_EQ(help->AwaitExit(), kExitOk);
  EXPECT_THAT(help->Log(), HasSubstr("--store-directory"));
  const auto version = Launch(KernixdCommand{.arguments = {"--version"}, .place_arguments = false});
  EXPECT_EQ(version->AwaitExit(), kExitOk);
  EXPECT_THAT(version->Log(), HasSubstr(Version()));
}

TEST_F(KernixdStartTest, AnUnusableStore) {
  ASSERT_THAT(Env::Posix().WriteFile(place_.root() + "/file", "", 0600), IsOk());
  const auto daemon = Launch(
      KernixdCommand{.arguments = {"--store-directory", place_.root() + "/file/store", "--socket", place_.socket()},
                     .place_arguments = false});
  EXPECT_EQ(daemon->AwaitExit(), kExitStoreUnusable);
  EXPECT_THAT(daemon->Log(), HasSubstr(place_.root() + "/file/store"));
}

TEST_F(KernixdStartTest, ASecondOneOnTheSocketNamesTheFirst) {
  const auto first = Serve();
  const auto second = LaunchWith({});
  EXPECT_EQ(second->AwaitExit(), kExitAlreadyRunning);
  EXPECT_THAT(second->Log(), HasSubstr(StrCat("kernixd (process ", first->pid(), ") already serves")));
  EXPECT_THAT(Connect()->Info(), IsOk());
}

TEST_F(KernixdStartTest, ASecondOneOnTheStoreNamesTheFirst) {
  const auto first = Serve();
  const auto second = Launch(
      KernixdCommand{.arguments = {"--store-directory", place_.store(), "--socket", place_.root() + "/other.sock"},
                     .place_arguments = false});
  EXPECT_EQ(second->AwaitExit(), kExitAlreadyRunning);
  EXPECT_THAT(second->Log(), HasSubstr(StrCat("process ", first->pid())));
}

TEST_F(KernixdStartTest, FindsTheRunFolderOfItsStore) {
  const auto daemon =
      Launch(KernixdCommand{.environment = {{"XDG_RUNTIME_DIR", place_.root()}, {"KERNIX_CACHE_DIR", place_.store()}},
                            .place_arguments = false});
  ASSERT_THAT(daemon->AwaitReady(), IsOk());
  const auto place = RunFolderForStore(
      Env::Posix(),
      [this](const std::string& name) {
        return name == "XDG_RUNTIME_DIR" ? std::optional(place_.root()) : std::nullopt;
      },
      geteuid(), place_.store());
  ASSERT_THAT(place, IsOk());
  EXPECT_THAT(TestClient(place->socket).Info(), IsOk());
  EXPECT_THAT(Env::Posix().TryLockFile(place->lock), HasError(absl::StatusCode::kUnavailable, testing::_));
}

TEST_F(KernixdStartTest, KeepsThePriorityThatItsUserGivesIt) {
  const std::string script = place_.root() + "/nice-kernixd";
  ASSERT_THAT(Env::Posix().WriteFile(script, "#!/bin/sh\nexec nice -n 3 " KERNIXD_PROGRAM " \"$@\"\n", 0700), IsOk());
  const auto daemon = Launch(KernixdCommand{.program = script});
  ASSERT_THAT(daemon->AwaitReady(), IsOk());
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(daemon->pid())), getpriority(PRIO_PROCESS, 0) + 3);
}

TEST_F(KernixdStartTest, OneshotServesItsConnectionAndEnds) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const auto daemon = Launch(KernixdCommand{.arguments = {"--oneshot-fd", "3", "--store-directory", place_.store()},
                                            .inherited_fd = theirs.get(),
                                            .place_arguments = false});
  theirs.reset();
  {
    TestClient client(std::move(ours));
    EXPECT_EQ(client.Info()->pid(), daemon->pid());
    EXPECT_TRUE(client.Load(AddKernel(1)).result);
  }
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
}

TEST_F(KernixdStartTest, OneshotEndsWithAClientThatNeverSpoke) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd theirs(ends[1]);
  const auto daemon = Launch(KernixdCommand{.arguments = {"--oneshot-fd", "3", "--store-directory", place_.store()},
                                            .inherited_fd = theirs.get(),
                                            .place_arguments = false});
  theirs.reset();
  close(ends[0]);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
}

TEST_F(KernixdStartTest, OneshotWantsASocket) {
  const auto daemon = Launch(KernixdCommand{.arguments = {"--oneshot-fd", "0", "--store-directory", place_.store()},
                                            .place_arguments = false});
  EXPECT_EQ(daemon->AwaitExit(), kExitUsage);
}

TEST_F(KernixdStartTest, TakesASocketFromSystemd) {
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address(place_.socket());
  ASSERT_EQ(bind(listener.get(), address.get(), address.size()), 0);
  ASSERT_EQ(listen(listener.get(), 16), 0);
  const UniqueFd early = ConnectTo(place_.socket()).value();  // waits in the queue for the daemon
  const auto daemon = Launch(KernixdCommand{.inherited_fd = listener.get(), .socket_activation = true});
  ASSERT_THAT(daemon->AwaitReady(), IsOk());
  EXPECT_EQ(Connect()->Info()->pid(), daemon->pid());
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  EXPECT_THAT(Env::Posix().Stat(place_.socket()), IsOk());  // the socket is systemd's, not ours
}

TEST_F(KernixdStartTest, IsNotIdleAsLongAsAClientIsThere) {
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address(place_.socket());
  ASSERT_EQ(bind(listener.get(), address.get(), address.size()), 0);
  ASSERT_EQ(listen(listener.get(), 16), 0);
  // Connects before the daemon starts, so that there is always a client.
  auto client = std::make_unique<TestClient>(ConnectTo(place_.socket()).value());
  const auto daemon = Launch(KernixdCommand{
      .arguments = {"--idle-timeout", "1ms"}, .inherited_fd = listener.get(), .socket_activation = true});
  EXPECT_TRUE(client->Load(AddKernel(1)).result);
  EXPECT_THAT(client->Info(), IsOk());
  client.reset();
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  EXPECT_THAT(daemon->Log(), HasSubstr("drain reason=idle"));
}

TEST_F(KernixdStartTest, RefusesOtherDescriptorsFromSystemd) {
  const UniqueFd datagram(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto daemon = Launch(KernixdCommand{.inherited_fd = datagram.get(), .socket_activation = true});
  EXPECT_EQ(daemon->AwaitExit(), kExitUsage);
  EXPECT_THAT(daemon->Log(), HasSubstr("ListenStream="));
}

}  // namespace
}  // namespace kernix::server
