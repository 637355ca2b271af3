// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd: who may connect, and what a shared daemon allows.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/os/env.h"
#include "common/wire/grpc_status.h"
#include "daemon/transport/local_user.h"
#include "tests/support/await.h"
#include "tests/support/kernixd_fixture.h"
#include "tests/support/need_right.h"
#include "tests/support/other_groups.h"

namespace kernix::server {
namespace {

using ::testing::HasSubstr;

class KernixdAccessTest : public KernixdTest {};

TEST_F(KernixdAccessTest, NoiseEndsItsConnectionOnly) {
  const auto daemon = Serve();
  const UniqueFd noise = ConnectTo(place_.socket()).value();
  fcntl(noise.get(), F_SETFL, fcntl(noise.get(), F_GETFL) & ~O_NONBLOCK);
  const std::string words(64, '?');
  ASSERT_EQ(write(noise.get(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
  std::string answer(4096, '\0');
  for (ssize_t size = 1; size > 0; size = read(noise.get(), answer.data(), answer.size())) {
    AwaitReadable("the end of the connection", noise.get());
  }
  EXPECT_THAT(Connect()->Info(), IsOk());
}

// Whether the daemon accepts the connection and closes it at once.
bool IsTurnedAway(const SocketAddress& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  char byte = 0;
  return connect(fd, address.get(), address.size()) == 0 && read(fd, &byte, 1) == 0;
}

TEST_F(KernixdAccessTest, AnotherUserIsTurnedAway) {
  KERNIX_NEED_ROOT("only root can become somebody else");
  const auto daemon = Serve();
  const SocketAddress address(place_.socket());
  const auto is_forbidden = [&] {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, address.get(), address.size()) != 0;
  };
  EXPECT_TRUE(AsNobody(is_forbidden));
  // Also if the file's mode would admit them.
  ASSERT_EQ(chmod(place_.root().c_str(), 0755), 0);
  ASSERT_EQ(chmod(place_.socket().c_str(), 0666), 0);
  EXPECT_TRUE(AsNobody([&] { return IsTurnedAway(address); }));
  EXPECT_THAT(daemon->Log(), HasSubstr("warning connection_refused uid=65534"));
  EXPECT_THAT(Connect()->Info(), IsOk());
}

TEST_F(SharedKernixdTest, BuildsWithARegisteredToolchainOnly) {
  const auto daemon = ServeShared();
  const auto client = Connect();
  EXPECT_TRUE(client->Info()->shared());
  EXPECT_THAT(daemon->Log(), HasSubstr("toolchain=system"));

  v1::LoadRequest request = AddKernel(1);
  const std::string copy = place_.root() + "/my-g++";
  ASSERT_THAT(Env::Posix().WriteFile(copy, Env::Posix().ReadFile("/usr/bin/g++").value(), 0755), IsOk());
  request.mutable_toolchain()->set_host_compiler(copy);
  EXPECT_TRUE(client->Load(request).result);

  const std::string trap = place_.root() + "/trap";
  const std::string script = StrCat("#!/bin/sh\ntouch ", place_.root(), "/was-run\n");
  ASSERT_THAT(Env::Posix().WriteFile(trap, script, 0755), IsOk());
  request.mutable_toolchain()->set_host_compiler(trap);
  const LoadOutcome refused = client->Load(request);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->kind(), v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN);
  EXPECT_THAT(refused.failure->message(), HasSubstr("system (/usr/bin/g++)"));
  EXPECT_FALSE(Env::Posix().Stat(place_.root() + "/was-run").ok());
}

TEST_F(SharedKernixdTest, TheGroupMayUseTheSocket) {
  const struct group* own = getgrgid(getegid());
  ASSERT_NE(own, nullptr);
  const auto daemon = ServeShared({"--socket-group", own->gr_name});
  EXPECT_EQ(Env::Posix().Stat(place_.socket())->mode, 0660u);
}

TEST_F(SharedKernixdTest, TheGroupOwnsTheSocket) {
  KERNIX_NEED_ROOT("only root can give a file to a group that it is not in");
  const OtherGroup other = AGroupThatIsNotOurs();
  const auto daemon = ServeShared({"--socket-group", other.name});
  struct stat info = {};
  ASSERT_EQ(stat(place_.socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, other.gid);
  EXPECT_EQ(info.st_mode & 07777, 0660u);
}

}  // namespace
}  // namespace kernix::server
