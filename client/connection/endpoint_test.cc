// SPDX-License-Identifier: Apache-2.0
#include "client/connection/endpoint.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "tests/support/bound_socket.h"
#include "tests/support/mem_env.h"
#include "tests/support/need_right.h"

namespace kernix {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class EndpointTest : public testing::Test {
 protected:
  EndpointTest() {
    directory_ = Env::Posix().CreateTempDirectory("/tmp/kernix-endpoint-test-").value();
    environment_.get_env = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
    environment_.service_socket = JoinPath(directory_, "service.sock");
    variables_["HOME"] = directory_;
    variables_["XDG_RUNTIME_DIR"] = directory_;
  }
  ~EndpointTest() override { EXPECT_TRUE(Env::Posix().RemoveTree(directory_).ok()); }

  void MakeServiceSocket() { service_ = BoundSocket(environment_.service_socket); }

  absl::StatusOr<Endpoint> Resolve() { return ResolveEndpoint(environment_, options_); }

  std::string directory_;
  std::map<std::string, std::string> variables_;
  ClientEnvironment environment_;
  ClientOptions options_;
  UniqueFd service_;
};

TEST_F(EndpointTest, TheOwnDaemonIsWhatRemains) {
  const absl::StatusOr<Endpoint> endpoint = Resolve();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->kind, EndpointKind::kOwn);
  EXPECT_EQ(endpoint->store_directory, JoinPath(directory_, ".cache/kernix"));
  EXPECT_THAT(endpoint->socket, StartsWith(directory_));
  EXPECT_TRUE(endpoint->unusable.ok());
}

TEST_F(EndpointTest, EachSourceGivesWayToTheOneBefore) {
  MakeServiceSocket();
  EXPECT_EQ(Resolve()->kind, EndpointKind::kService);

  variables_["KERNIX_CACHE_DIR"] = JoinPath(directory_, "asked");
  EXPECT_EQ(Resolve()->kind, EndpointKind::kOwn);
  EXPECT_EQ(Resolve()->store_directory, JoinPath(directory_, "asked"));

  variables_["KERNIX_ADDRESS"] = "unix:///from-variable.sock";
  EXPECT_EQ(Resolve()->socket, "/from-variable.sock");
  EXPECT_EQ(Resolve()->origin, "$KERNIX_ADDRESS");

  options_.store_directory = JoinPath(directory_, "store");
  EXPECT_EQ(Resolve()->kind, EndpointKind::kOwn);
  EXPECT_EQ(Resolve()->store_directory, options_.store_directory);

  options_.store_directory.clear();
  options_.address = "/from-options.sock";
  EXPECT_EQ(Resolve()->kind, EndpointKind::kNamed);
  EXPECT_EQ(Resolve()->socket, "/from-options.sock");
}

TEST_F(EndpointTest, AddressesThatCannotBeUsedAreRefusedWithTheirOrigin) {
  for (const char* address : {"localhost:7000", "https://build.example", "relative.sock", "unix:relative.sock"}) {
    variables_["KERNIX_ADDRESS"] = address;
    const absl::Status status = Resolve().status();
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST) << address;
    EXPECT_THAT(std::string(status.message()), HasSubstr("$KERNIX_ADDRESS")) << address;
    EXPECT_THAT(std::string(status.message()), HasSubstr(address)) << address;
  }
}

TEST_F(EndpointTest, AnAddressAndAStoreContradictEachOther) {
  options_.address = "/x.sock";
  options_.store_directory = "/x";
  EXPECT_EQ(KindOf(Resolve().status()), v1::ErrorDetail::INVALID_REQUEST);
}

TEST_F(EndpointTest, AStoreMustBeAnAbsolutePath) {
  options_.store_directory = "store";
  EXPECT_EQ(KindOf(Resolve().status()), v1::ErrorDetail::INVALID_REQUEST);
}

TEST_F(EndpointTest, WhereSomebodyElseHasTheRuntimeDirectoryTheRunFolderIsInTheStoreAndHeIsNamed) {
  KERNIX_NEED_ROOT("giving a folder away takes root");
  const std::string taken = JoinPath(directory_, "kernix");
  ASSERT_TRUE(Env::Posix().CreateDirectories(taken, 0700).ok());
  ASSERT_EQ(chown(taken.c_str(), 1, 1), 0);
  options_.store_directory = JoinPath(directory_, "store");
  const absl::StatusOr<Endpoint> endpoint = Resolve();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->socket, JoinPath(directory_, "store/private/run/kernixd.sock"));
  EXPECT_THAT(endpoint->warning, AllOf(HasSubstr(taken), HasSubstr("uid 1"), HasSubstr("Have it removed")));

  options_.store_directory = JoinPath(directory_, std::string(100, 'x'));  // too long for a socket
  const absl::StatusOr<Endpoint> without = Resolve();
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->socket, "");
  EXPECT_THAT(std::string(without->unusable.message()), AllOf(HasSubstr(taken), HasSubstr("uid 1")));
}

TEST_F(EndpointTest, WhereSomebodyElseHasTheUsualStoreHeIsNamed) {
  MemEnv env;
  env.SetUid(environment_.uid);
  const std::string taken = StrCat("/var/tmp/kernix-", environment_.uid);
  ASSERT_TRUE(env.CreateDirectories(taken, 0700).ok());
  env.SetOwner(taken, 1);
  environment_.env = &env;
  variables_["XDG_CACHE_HOME"] = "/caf\xe9";
  const absl::StatusOr<Endpoint> endpoint = Resolve();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->store_directory, StrCat("/tmp/kernix-", environment_.uid, "/store"));
  EXPECT_THAT(endpoint->warning, AllOf(HasSubstr(taken), HasSubstr("uid 1"), EndsWith("a restart.")));
  EXPECT_TRUE(endpoint->unusable.ok());
}

TEST_F(EndpointTest, AServiceSocketOfSomebodyElseIsRefusedByName) {
  KERNIX_NEED_ROOT("giving a socket away takes root");
  MakeServiceSocket();
  EXPECT_EQ(Resolve()->warning, "");
  ASSERT_EQ(chown(environment_.service_socket.c_str(), 1, 1), 0);
  const absl::StatusOr<Endpoint> endpoint = Resolve();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->kind, EndpointKind::kOwn);
  EXPECT_THAT(endpoint->warning, AllOf(HasSubstr(environment_.service_socket), HasSubstr("uid 1)")));
  EXPECT_THAT(endpoint->warning, HasSubstr("set KERNIX_ADDRESS"));
}

// What ResolveEndpoint(), or ConnectTo() of a named address, says to a user without any group of the service.
std::string HintForAnother(ClientEnvironment environment) {
  constexpr uid_t kAnother = 65534;
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    environment.uid = kAnother;
    const bool left = setgroups(0, nullptr) == 0 && setgid(kAnother) == 0 && setuid(kAnother) == 0;
    const absl::StatusOr<Endpoint> endpoint = ResolveEndpoint(environment, {});
    const std::string hint = !left            ? "still root"
                             : !endpoint.ok() ? endpoint.status().ToString()
                             : endpoint->kind != EndpointKind::kNamed
                                 ? endpoint->hint
                                 : std::string(ConnectTo(environment, *endpoint).status().message());
    _exit(write(ends[1], hint.data(), hint.size()) == static_cast<ssize_t>(hint.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string hint;
  for (char buffer[512]; const ssize_t got = read(ends[0], buffer, sizeof(buffer));)
    hint.append(buffer, std::max<ssize_t>(got, 0));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return hint;
}

TEST_F(EndpointTest, WhoIsNotInTheGroupOfTheServiceIsToldHowToJoin) {
  KERNIX_NEED_ROOT("becoming another user takes root");
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  EXPECT_EQ(HintForAnother(environment_), "") << "there is no service";
  MakeServiceSocket();
  ASSERT_EQ(chmod(environment_.service_socket.c_str(), 0600), 0);
  EXPECT_EQ(HintForAnother(environment_), "") << "nobody may join";
  ASSERT_EQ(chmod(environment_.service_socket.c_str(), 0660), 0);
  EXPECT_EQ(HintForAnother(environment_), "") << "the group is root's";
  ASSERT_EQ(chown(environment_.service_socket.c_str(), 0, 4), 0);
  EXPECT_THAT(HintForAnother(environment_), AllOf(HasSubstr("the group adm "), HasSubstr(environment_.service_socket),
                                                  HasSubstr("usermod -aG adm nobody"), HasSubstr("log in again")));
  variables_["KERNIX_ADDRESS"] = environment_.service_socket;
  EXPECT_THAT(HintForAnother(environment_),
              AllOf(HasSubstr("Permission denied"), HasSubstr("the group adm "),
                    HasSubstr("you are not in it. To join: sudo usermod -aG adm nobody")));
  variables_.erase("KERNIX_ADDRESS");
  ASSERT_EQ(chmod(environment_.service_socket.c_str(), 0666), 0);
  EXPECT_EQ(HintForAnother(environment_), "") << "it serves everybody";
  ASSERT_EQ(Resolve()->hint, "") << "root may use it";
}

TEST_F(EndpointTest, ARelativeRuntimeDirectoryIsIgnored) {
  variables_["XDG_RUNTIME_DIR"] = "relative";
  const absl::StatusOr<Endpoint> endpoint = Resolve();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_THAT(endpoint->socket, StartsWith("/tmp/kernix-"));
}

}  // namespace

namespace {

using ::testing::HasSubstr;

class UnixSocketTest : public testing::Test {
 protected:
  UnixSocketTest() { directory_ = Env::Posix().CreateTempDirectory("/tmp/kernix-unix-socket-test-").value(); }
  ~UnixSocketTest() override { EXPECT_TRUE(Env::Posix().RemoveTree(directory_).ok()); }

  UniqueFd Listen(const std::string& path, int backlog) {
    UniqueFd fd = BoundSocket(path);
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
