// SPDX-License-Identifier: Apache-2.0
//
// The machine's service, and falling back from it.
#include <gmock/gmock.h>
#include <grp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "client/connection/daemon_client.h"
#include "client/tools/toolchain_finder.h"
#include "common/base/error.h"
#include "common/os/folders.h"
#include "common/os/unique_fd.h"
#include "tests/integration/client_world.h"
#include "tests/support/await.h"
#include "tests/support/bound_socket.h"
#include "tests/support/need_right.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClientServiceTest : public ClientWorld {
 protected:
  ClientServiceTest() {
    unsetenv("KERNIX_CACHE_DIR");  // or the service is not looked for
    environment_.service_socket = Path("service.sock");
    options_.callbacks.warning = [this](std::string_view text) { warnings_.emplace_back(text); };
  }
  ~ClientServiceTest() override {
    if (service_ == 0) return;
    kill(service_, SIGTERM);
    waitpid(service_, nullptr, 0);
  }

  // A shared daemon with a toolchain that no client asks for.
  void StartService() { StartServiceWith(WriteScript("other-c++", "exit 1\n")); }

  void StartServiceWith(const std::string& compiler, const std::vector<std::string>& more = {}) {
    const std::string config = Path("service.toml");
    ASSERT_TRUE(Env::Posix()
                    .WriteFile(config, "[[toolchain]]\nname = \"other\"\nhost_compiler = \"" + compiler + "\"\n", 0600)
                    .ok());
    std::vector<std::string> texts = {KERNIXD_PROGRAM,
                                      "--socket",
                                      environment_.service_socket,
                                      "--store-directory",
                                      Path("service-store"),
                                      "--config",
                                      config,
                                      "--shared",
                                      "--unknown-users",
                                      "true"};
    texts.insert(texts.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&service_, KERNIXD_PROGRAM, nullptr, nullptr, argv.data(), environ), 0);
    ClientOptions named;
    named.address = environment_.service_socket;
    const auto probe = MakeClient(named);
    bool ended = false;
    Await("the service", [&] {
      ended = waitpid(service_, nullptr, WNOHANG) != 0;
      return ended || probe->Info(/*start=*/false).ok();
    });
    ASSERT_FALSE(ended) << "the service has ended";
  }

  // A listener in the service's place whose process is `uid`'s when it begins to listen.
  UniqueFd ListenAs(uid_t uid) {
    UniqueFd fd = BoundSocket(environment_.service_socket);
    EXPECT_EQ(seteuid(uid), 0);
    EXPECT_EQ(listen(fd.get(), 16), 0);
    EXPECT_EQ(seteuid(0), 0);
    return fd;
  }

  UniqueFd ConnectAndSayNothing() { return ConnectTo(environment_.service_socket).value(); }

  static std::string FindProgram(const std::string& name) {
    return FirstOnPath(Env::Posix(), ProcessGetEnv, name, [](const std::string&) { return true; }).value();
  }

  std::unique_ptr<DaemonClient> MakeServiceClient() {
    ClientOptions options;
    options.start_timeout = std::chrono::minutes(2);
    return DaemonClient::Create(environment_, options).value();
  }

  // Loads kernel `number` through the service, and through nothing else, as another user of the machine, in a child:
  // kBuilt or kHit; anything else is a failure.
  int LoadAs(uid_t uid, int number) {
    const std::string home = Path("home-" + std::to_string(uid));
    EXPECT_TRUE(Env::Posix().CreateDirectories(home, 0700).ok());
    EXPECT_EQ(chown(home.c_str(), uid, uid), 0);
    return ForkAndRun([this, &home, uid, number] {
      if (setgroups(0, nullptr) != 0 || setgid(uid) != 0 || setuid(uid) != 0) return 1;
      SetVariable("HOME", home);
      environment_.uid = uid;
      ClientOptions options;
      options.allow_start = false;
      const auto client = DaemonClient::Create(environment_, options).value();
      const auto module = LoadKernel(*client, number);
      if (!module.ok()) return fprintf(stderr, "%s\n", module.status().ToString().c_str()) > 0 ? 2 : 3;
      // The store is the service's, which lets nobody in: what is loaded was streamed, into a place of this user.
      if (!(*module)->path().starts_with(home)) return 4;
      return (*module)->cache_hit() ? kHit : kBuilt;
    });
  }
  static constexpr int kBuilt = 10;
  static constexpr int kHit = 11;

  ClientEnvironment environment_;
  LoadOptions options_;
  std::vector<std::string> warnings_;

 private:
  pid_t service_ = 0;
};

TEST_F(ClientServiceTest, IsUsedWhenItIsThere) {
  StartService();
  const absl::StatusOr<DaemonInfo> info = MakeServiceClient()->Info(/*start=*/true);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->shared);
  EXPECT_EQ(info->store_directory, Path("service-store"));
}

TEST_F(ClientServiceTest, WithoutTheToolchainTheOwnDaemonLoadsAndTheUserIsTold) {
  StartService();
  const auto client = MakeServiceClient();
  const auto module = LoadKernel(*client, 21, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("using this user's own kernixd instead")));
  ClientOptions own;
  own.store_directory = DefaultStoreDirectory(Env::Posix(), ProcessGetEnv, geteuid()).value();
  EXPECT_TRUE(MakeClient(own)->Info(/*start=*/false).ok());
}

TEST_F(ClientServiceTest, WaitsWhileItsUserHasTooManyConnections) {
  StartServiceWith(FindProgram("c++"), {"--max-connections-per-user", "3"});
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 3; ++i) idle.push_back(ConnectAndSayNothing());
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
    idle.clear();
  });
  const auto client = MakeServiceClient();
  const auto module = LoadKernel(*client, 23, options_);
  later.join();
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

TEST_F(ClientServiceTest, TwoUsersShareOneBuild) {
  KERNIX_NEED_ROOT("being two users takes root");
  StartServiceWith(FindProgram("c++"));
  // What the socket's group does on a real machine.
  ASSERT_EQ(chmod(Path("").c_str(), 0755), 0);
  ASSERT_EQ(chmod(environment_.service_socket.c_str(), 0666), 0);
  EXPECT_EQ(LoadAs(4711, 41), kBuilt);
  EXPECT_EQ(LoadAs(4712, 41), kHit);
  const absl::StatusOr<v1::GetCacheStatsResponse> stats = MakeServiceClient()->Stats(/*start=*/false);
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->builds(), 1u);
  EXPECT_EQ(stats->hits(), 1u);
}

TEST_F(ClientServiceTest, TheSocketOfAStrangerIsRefusedByNameAndTheOwnDaemonServes) {
  KERNIX_NEED_ROOT("giving a socket away takes root");
  const UniqueFd listener = ListenAs(4711);
  ASSERT_EQ(chown(environment_.service_socket.c_str(), 4711, 4711), 0);
  const auto module = LoadKernel(*MakeServiceClient(), 23, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr(environment_.service_socket), HasSubstr("belongs to uid 4711"))));
}

TEST_F(ClientServiceTest, AStrangerWhoServesTheSocketOfRootIsRefusedByName) {
  KERNIX_NEED_ROOT("listening as somebody else takes root");
  const UniqueFd listener = ListenAs(4711);
  const auto module = LoadKernel(*MakeServiceClient(), 24, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("served by uid 4711")));
}

TEST_F(ClientServiceTest, AStrangerWhoServesANamedAddressIsAnError) {
  KERNIX_NEED_ROOT("listening as somebody else takes root");
  const UniqueFd listener = ListenAs(4711);
  ClientOptions named;
  named.address = environment_.service_socket;
  const auto module = LoadKernel(*MakeClient(named), 25, options_);
  EXPECT_EQ(KindOf(module.status()), v1::ErrorDetail::UNREACHABLE);
  EXPECT_THAT(std::string(module.status().message()), HasSubstr("served by uid 4711"));
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(ClientServiceTest, ASocketThatNobodyServesGivesWayToTheOwnDaemon) {
  ASSERT_TRUE(Env::Posix().WriteFile(environment_.service_socket, "", 0600).ok());
  const auto module = LoadKernel(*MakeServiceClient(), 22, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr(environment_.service_socket)));
}

}  // namespace
}  // namespace kernix
