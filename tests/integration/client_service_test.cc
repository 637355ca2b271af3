// SPDX-License-Identifier: Apache-2.0
//
// The machine's service, and falling back from it.
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "client/src/remote_client.h"
#include "daemon/base/error.h"
#include "tests/integration/client_world.h"

namespace kernix {
namespace {

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
  void StartService() {
    const std::string compiler = WriteScript("other-c++", "exit 1\n");
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
                                      "--shared"};
    std::vector<char*> argv;
    for (std::string& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&service_, KERNIXD_PROGRAM, nullptr, nullptr, argv.data(), environ), 0);
    ClientOptions named;
    named.address = environment_.service_socket;
    const auto probe = MakeClient(named);
    while (!probe->Info(/*start=*/false).ok()) {
      ASSERT_EQ(waitpid(service_, nullptr, WNOHANG), 0) << "the service has ended";
      std::this_thread::yield();
    }
  }

  std::unique_ptr<Remote> MakeServiceClient() {
    ClientOptions options;
    options.start_timeout = std::chrono::minutes(2);
    return RemoteClient::Create(environment_, options).value();
  }

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

TEST_F(ClientServiceTest, ASocketThatNobodyServesGivesWayToTheOwnDaemon) {
  ASSERT_TRUE(Env::Posix().WriteFile(environment_.service_socket, "", 0600).ok());
  const auto module = LoadKernel(*MakeServiceClient(), 22, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr(environment_.service_socket)));
}

}  // namespace
}  // namespace kernix
