// SPDX-License-Identifier: Apache-2.0
#include "client/connection/endpoint.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "common/base/error.h"
#include "common/os/unique_fd.h"
#include "tests/support/need_right.h"

namespace kernix {
namespace {

using ::testing::HasSubstr;

class ConfigFileTest : public testing::Test {
 protected:
  ConfigFileTest() {
    directory_ = Env::Posix().CreateTempDirectory(testing::TempDir() + "config_file_test-").value();
    variables_["HOME"] = directory_;
  }
  ~ConfigFileTest() override { EXPECT_TRUE(Env::Posix().RemoveTree(directory_).ok()); }

  void Write(const std::string& path, const std::string& text) {
    const std::string whole = JoinPath(directory_, path);
    ASSERT_TRUE(Env::Posix().CreateDirectories(Dirname(whole)).ok());
    ASSERT_TRUE(Env::Posix().WriteFile(whole, text, 0600).ok());
  }

  absl::StatusOr<ConfigFile> Read() {
    ClientEnvironment environment;
    environment.get_env = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
    return ReadConfigFile(environment);
  }

  std::string directory_;
  std::map<std::string, std::string> variables_;
};

TEST_F(ConfigFileTest, NoneAtTheUsualPlacesIsNoError) {
  const absl::StatusOr<ConfigFile> config = Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->path, "");
  EXPECT_EQ(config->address, "");
}

TEST_F(ConfigFileTest, IsReadFromHomeAndFromXdgConfigHomeFirst) {
  Write(".config/kernix/client.toml", "address = \"/home.sock\"\n");
  EXPECT_EQ(Read()->address, "/home.sock");
  Write("xdg/kernix/client.toml", "address = \"/xdg.sock\"\n");
  variables_["XDG_CONFIG_HOME"] = JoinPath(directory_, "xdg");
  EXPECT_EQ(Read()->address, "/xdg.sock");
}

TEST_F(ConfigFileTest, OneThatIsNamedMustBeThere) {
  variables_["KERNIX_CONFIG"] = JoinPath(directory_, "mine.toml");
  const absl::Status missing = Read().status();
  EXPECT_EQ(KindOf(missing), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("KERNIX_CONFIG: "));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("mine.toml"));
  Write("mine.toml", "address = \"unix:/mine.sock\"\n");
  EXPECT_EQ(Read()->address, "unix:/mine.sock");
}

TEST_F(ConfigFileTest, MistakesAreNamedWithTheirLine) {
  const std::string path = ".config/kernix/client.toml";
  Write(path, "\nadress = \"/x\"\n");
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("client.toml:2: unknown key \"adress\""));
  Write(path, "address = 3\n");
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("client.toml:1: address must be a string"));
  Write(path, "# fine\n\naddress = \n");
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("client.toml:3: "));
}

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

  void MakeServiceSocket() {
    service_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, environment_.service_socket.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(service_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

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

  const std::string config = JoinPath(directory_, "client.toml");
  ASSERT_TRUE(Env::Posix().WriteFile(config, "address = \"/from-config.sock\"", 0600).ok());
  variables_["KERNIX_CONFIG"] = config;
  EXPECT_EQ(Resolve()->socket, "/from-config.sock");
  EXPECT_EQ(Resolve()->origin, config);

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

}  // namespace kernix
