// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd: --check-config, and what changes when it reads its config file again.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>

#include "common/os/env.h"
#include "common/wire/grpc_status.h"
#include "common/wire/kernixd_exit.h"
#include "tests/support/await.h"
#include "tests/support/kernixd_fixture.h"

namespace kernix::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class KernixdReloadTest : public KernixdTest {
 protected:
  std::string Config() const { return place_.root() + "/kernixd.toml"; }
  void WriteConfig(const std::string& text) { ASSERT_THAT(Env::Posix().WriteFile(Config(), text, 0644), IsOk()); }

  static absl::StatusOr<v1::ReloadResponse> Reload(TestClient& client) {
    grpc::ClientContext context;
    v1::ReloadResponse response;
    const grpc::Status status = client.stub().Reload(&context, v1::ReloadRequest(), &response);
    if (!status.ok()) return FromGrpcStatus(status, "kernixd");
    return response;
  }
};

TEST_F(KernixdReloadTest, SighupAppliesWhatCanChangeAndNamesWhatCannot) {
  WriteConfig("cache_limit_bytes = \"1GiB\"\njobs = 1\n");
  const auto daemon = Serve({"--config", Config()});
  WriteConfig("cache_limit_bytes = \"2GiB\"\njobs = 2\n");
  daemon->Signal(SIGHUP);
  Await("the reload", [&] { return daemon->Log().find("reload_needs_restart") != std::string::npos; });
  EXPECT_THAT(daemon->Log(), HasSubstr("info reload applied=cache_limit_bytes\n"));
  EXPECT_THAT(daemon->Log(), HasSubstr("warning reload_needs_restart settings=jobs\n"));
  EXPECT_EQ(Connect()->Stats()->limit_bytes(), 2ull << 30);
}

TEST_F(KernixdReloadTest, ABadFileChangesNothingAndIsToldWhole) {
  WriteConfig("cache_limit_bytes = \"1GiB\"\n");
  const auto daemon = Serve({"--config", Config()});
  const auto client = Connect();
  WriteConfig("cache_limit_bytes = \"2GiB\"\ncolour = 1\nshape = 2\n");
  const absl::StatusOr<v1::ReloadResponse> refused = Reload(*client);
  EXPECT_THAT(refused.status().message(), HasSubstr("kernixd.toml:2: unknown key \"colour\""));
  EXPECT_THAT(refused.status().message(), HasSubstr("kernixd.toml:3: unknown key \"shape\""));
  EXPECT_THAT(daemon->Log(), HasSubstr("reload_failed"));
  EXPECT_EQ(client->Stats()->limit_bytes(), 1ull << 30);
  WriteConfig("cache_limit_bytes = \"3GiB\"\ncache_limit_per_user = \"1GiB\"\n");
  EXPECT_THAT(Reload(*client)->applied(), ElementsAre("cache_limit_bytes", "cache_limit_per_user"));
  EXPECT_EQ(client->Stats()->limit_bytes(), 3ull << 30);
  EXPECT_EQ(client->Stats()->limit_bytes_per_user(), 1ull << 30);
}

TEST_F(KernixdReloadTest, RegisteredToolchainsAreReplaced) {
  const std::string one = "shared = true\n[[toolchain]]\nname = \"one\"\nhost_compiler = \"/usr/bin/g++\"\n";
  WriteConfig(one);
  const auto daemon = Serve({"--config", Config()});
  const auto client = Connect();
  WriteConfig(one + "[[toolchain]]\nname = \"two\"\nhost_compiler = \"/nonexistent/g++\"\n");
  EXPECT_THAT(Reload(*client)->applied(), ElementsAre("toolchain"));
  grpc::ClientContext context;
  v1::GetStatusResponse status;
  ASSERT_TRUE(client->stub().GetStatus(&context, v1::GetStatusRequest(), &status).ok());
  ASSERT_EQ(status.toolchain_size(), 2);
  EXPECT_EQ(status.toolchain(0).problem(), "");
  EXPECT_EQ(status.toolchain(1).name(), "two");
  EXPECT_THAT(status.toolchain(1).problem(), HasSubstr("/nonexistent/g++"));
}

TEST_F(KernixdReloadTest, WithoutAFileThereIsNothingToReadAgain) {
  const auto daemon = Serve();
  EXPECT_THAT(Reload(*Connect()).status().message(), HasSubstr("without --config"));
}

TEST_F(KernixdReloadTest, CheckConfigLooksAtWhatTheFileNames) {
  const auto check = [&](const std::string& text) {
    WriteConfig(text);
    return Launch({.arguments = {"--config", Config(), "--check-config"}, .place_arguments = false});
  };
  const std::string good = "shared = true\n[[toolchain]]\nname = \"one\"\nhost_compiler = \"/usr/bin/g++\"\n";
  EXPECT_EQ(check(good)->AwaitExit(), kExitOk);
  const auto bad = check(good + "[[toolchain]]\nname = \"two\"\nhost_compiler = \"/nonexistent/g++\"\n");
  EXPECT_EQ(bad->AwaitExit(), kExitUsage);
  EXPECT_THAT(bad->Log(), HasSubstr("kernixd.toml:5: toolchain \"two\": "));
  EXPECT_THAT(bad->Log(), Not(HasSubstr("toolchain \"one\"")));
  const auto no_compiler = check("shared = true\n[[toolchain]]\nname = \"one\"\nhost_compiler = \"/bin/true\"\n");
  EXPECT_EQ(no_compiler->AwaitExit(), kExitUsage);
  EXPECT_THAT(no_compiler->Log(),
              HasSubstr("/bin/true is neither a GCC nor a Clang: set host_compiler to one of them\n"));
  const auto no_group = check("admin_group = \"no-such-group\"\n" + good);
  EXPECT_EQ(no_group->AwaitExit(), kExitUsage);
  EXPECT_THAT(no_group->Log(), HasSubstr("kernixd.toml:1: "));
}

TEST_F(KernixdTest, FoldersOfDaemonsThatAreLongGoneAreRemoved) {
  const std::string run = place_.root() + "/run";
  ASSERT_EQ(mkdir(run.c_str(), 0700), 0);
  const auto serve = [&](const std::string& store) {
    auto daemon = Launch({.arguments = {"--store-directory", place_.root() + "/" + store},
                          .environment = {{"XDG_RUNTIME_DIR", run}},
                          .place_arguments = false});
    EXPECT_THAT(daemon->AwaitReady(), IsOk());
    return daemon;
  };
  const auto folders = [&] { return Env::Posix().ListDirectory(run + "/kernix").value(); };
  const auto age = [&](const std::string& folder) {  // by two weeks
    const std::string command = StrCat("find ", run, "/kernix/", folder, " -exec touch -h -d '14 days ago' {} +");
    ASSERT_EQ(std::system(command.c_str()), 0);
  };
  for (const std::string store : {"a", "b"}) {
    auto ended = serve(store);
    ended->Signal(SIGTERM);
    EXPECT_EQ(ended->AwaitExit(), kExitOk);
  }
  const std::string old_folder = folders().at(0);
  age(old_folder);
  const auto running = serve("c");
  EXPECT_THAT(folders(), testing::SizeIs(2)) << "the young one and that of the daemon";
  EXPECT_THAT(folders(), Not(testing::Contains(old_folder)));
  for (const std::string& folder : folders()) age(folder);
  const auto last = serve("d");
  EXPECT_THAT(folders(), testing::SizeIs(2)) << "the running daemon's stays, however old";
}

}  // namespace
}  // namespace kernix::server
