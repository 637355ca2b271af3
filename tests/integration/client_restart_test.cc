// SPDX-License-Identifier: Apache-2.0
//
// Daemons that die or lose their store or socket, and daemons of another build.
#include <gmock/gmock.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "client/connection/daemon_client.h"
#include "common/base/digest.h"
#include "common/base/error.h"
#include "common/base/version.h"
#include "common/os/folders.h"
#include "tests/integration/client_world.h"

namespace kernix {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The stand-in for a daemon of another build, from when it serves.
class OtherKernixd {
 public:
  OtherKernixd(const RunFolder& folder, int protocol) {
    const std::string command =
        std::string("exec ") + OTHER_KERNIXD + " " + folder.socket + " " + folder.lock + " " + std::to_string(protocol);
    stream_ = popen(command.c_str(), "r");
    char line[16] = {};
    EXPECT_NE(fgets(line, sizeof(line), stream_), nullptr);
    EXPECT_STREQ(line, "ready\n");
  }
  // Its exit status, when it has stopped.
  int AwaitStop() { return pclose(std::exchange(stream_, nullptr)); }
  ~OtherKernixd() {
    if (stream_ != nullptr) pclose(stream_);
  }

 private:
  FILE* stream_;
};

class ClientRestartTest : public ClientWorld {};

// Though the daemon may learn from its last build, and make and remove files there.
void RemoveAll(const std::string& path) {
  EXPECT_TRUE(Eventually([&] {
    std::error_code busy;
    std::filesystem::remove_all(path, busy);
    return !busy;
  }));
}

TEST_F(ClientRestartTest, AKilledDaemonIsStartedAgain) {
  const auto client = MakeClient();
  const int64_t first = client->Info()->pid;
  ASSERT_EQ(kill(static_cast<pid_t>(first), SIGKILL), 0);
  const absl::StatusOr<DaemonInfo> second = client->Info();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(second->pid, first);
}

TEST_F(ClientRestartTest, ALoadWhoseDaemonDiesIsMadeAgainOnce) {
  const auto client = MakeClient();
  const int64_t first = client->Info()->pid;
  LoadOptions options;
  int kills = 0;
  options.callbacks.progress = [&](std::string_view) {
    if (kills++ == 0) kill(static_cast<pid_t>(first), SIGKILL);
  };
  const auto module = LoadKernel(*client, 1, options);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_GE(kills, 1);
  EXPECT_NE(client->Info(/*start=*/false)->pid, first);
}

TEST_F(ClientRestartTest, ALoadWhoseDaemonsKeepDyingFails) {
  const auto client = MakeClient();
  LoadOptions options;
  options.callbacks.progress = [&](std::string_view) {
    const auto info = MakeClient()->Info(/*start=*/false);
    if (info.ok()) kill(static_cast<pid_t>(info->pid), SIGKILL);
  };
  // Takes the compiler some seconds, longer than it takes to kill its daemon.
  options.compile_flags = {"-fconstexpr-loop-limit=2147483647", "-fconstexpr-ops-limit=2147483647"};
  const std::string source =
      "#include \"brainevent/common.h\"\n"
      "constexpr long Count() {\n  long sum = 0;\n  for (long i = 0; i < 2000000; ++i) sum += i;\n  return sum;\n}\n"
      "constexpr long kSum = Count();\n"
      "// @BE fill ret\nvoid fill(BE::Tensor out) { *static_cast<float*>(out.data_ptr()) = kSum; }\n";
  const auto module = LoadCppInline(*client, "slow", {source}, options);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(KindOf(module.status()), v1::ErrorDetail::UNREACHABLE) << module.status();
}

TEST_F(ClientRestartTest, AStoreThatIsRemovedIsMadeAnewByTheNextLoad) {
  const auto client = MakeClient();
  for (const char* part : {"", "/version", "/artifacts", "/private", "/private/tmp"}) {
    SCOPED_TRACE(part);
    const auto before = LoadKernel(*client, 1);
    ASSERT_TRUE(before.ok()) << before.status();
    const int64_t pid = client->Info()->pid;
    RemoveAll(Path("store") + part);
    const auto after = LoadKernel(*client, 1, {.force_rebuild = true});
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_NE(client->Info()->pid, pid);
    const auto again = LoadKernel(*MakeClient(), 1);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE((*again)->cache_hit());
    EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "status"}).exit_code, 0);
  }
}

TEST_F(ClientRestartTest, ALoadWhoseStoreIsRemovedIsMadeAgain) {
  const auto client = MakeClient();
  ASSERT_TRUE(client->Info().ok());
  LoadOptions options;
  int removals = 0;
  options.callbacks.progress = [&](std::string_view) {
    if (removals++ == 0) RemoveAll(Path("store"));
  };
  const auto module = LoadKernel(*client, 1, options);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_GE(removals, 1);
  EXPECT_TRUE(Env::Posix().Stat((*module)->path()).ok());
}

TEST_F(ClientRestartTest, ADaemonWhoseSocketIsGoneIsReplacedWithItsStore) {
  const std::string runtime = Path("runtime");
  ASSERT_TRUE(Env::Posix().CreateDirectories(runtime, 0700).ok());
  SetVariable("XDG_RUNTIME_DIR", runtime);
  const RunFolder folder = RunFolderOfStore();
  ASSERT_TRUE(LoadKernel(*MakeClient(), 1).ok());
  const auto make_anew = [&] {
    std::filesystem::remove_all(runtime);
    return Env::Posix().CreateDirectories(runtime, 0700).ok();
  };
  const std::pair<const char*, std::function<bool()>> ways[] = {
      {"the socket", [&] { return std::filesystem::remove(folder.socket); }},
      {"socket and lock",
       [&] { return std::filesystem::remove(folder.socket) && std::filesystem::remove(folder.lock); }},
      {"the daemon's folder", [&] { return std::filesystem::remove_all(folder.directory) > 0; }},
      {"the runtime folder, made anew", make_anew},
      {"the runtime folder, for good", [&] { return std::filesystem::remove_all(runtime) > 0; }},
  };
  for (const auto& [what, goes] : ways) {
    SCOPED_TRACE(what);
    const int64_t pid = MakeClient()->Info()->pid;
    ASSERT_TRUE(goes());
    LoadOptions options;
    options.callbacks.warning = [](std::string_view text) { ADD_FAILURE() << text; };
    const auto module = LoadKernel(*MakeClient(), 1, options);
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_TRUE((*module)->cache_hit());
    EXPECT_NE(MakeClient()->Info()->pid, pid);
  }
  const std::string last = RunFolderOfStore().directory;  // outside the test's own folder
  EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "shutdown"}).exit_code, 0);
  std::filesystem::remove_all(last);
}

TEST_F(ClientRestartTest, ADaemonOfAnotherBuildIsDrainedAndReplaced) {
  OtherKernixd other(RunFolderOfStore(), kProtocolVersion);
  const absl::StatusOr<DaemonInfo> info = MakeClient()->Info();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->build_id, BuildId());
  EXPECT_EQ(other.AwaitStop(), 0);
}

TEST_F(ClientRestartTest, AClientThatMayNotStartUsesAnotherBuildOfTheSameProtocol) {
  OtherKernixd other(RunFolderOfStore(), kProtocolVersion);
  ClientOptions options;
  options.allow_start = false;
  const absl::StatusOr<v1::GetCacheStatsResponse> stats = MakeClient(options)->Stats();
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->builds(), 42u);
  EXPECT_TRUE(MakeClient()->Info().ok());  // replaces it
}

TEST_F(ClientRestartTest, WhatADaemonSendsIsKeptOnlyWhenItIsTheArtifact) {
  RunFolder folder = RunFolderOfStore();
  folder.socket = Path("named.sock");
  folder.lock = Path("named.lock");
  ClientOptions options;
  options.address = folder.socket;
  OtherKernixd other(folder, kProtocolVersion);
  const auto client = DaemonClient::Create(ClientEnvironment{}, options).value();
  const std::string artifact = "the artifact";  // as long as what is sent
  v1::LoadResult result;
  result.set_artifact_digest(DigestOf(artifact).Raw());
  result.set_artifact_size(artifact.size());
  result.set_artifact_path("/nonexistent/artifact");
  const absl::Status status = client->LocalArtifact(result).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INTERNAL) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(DigestOf(artifact).Hex()));
  EXPECT_THAT(Env::Posix().ListDirectory(Path("store/fetched")).value(), IsEmpty());
  EXPECT_TRUE(client->Shutdown({}).ok());
}

TEST_F(ClientRestartTest, OfANamedDaemonTheProtocolDecides) {
  RunFolder folder = RunFolderOfStore();
  folder.socket = Path("named.sock");
  folder.lock = Path("named.lock");
  ClientOptions options;
  options.address = folder.socket;
  {
    OtherKernixd other(folder, kProtocolVersion);
    EXPECT_EQ(MakeClient(options)->Stats()->builds(), 42u);
    ASSERT_TRUE(MakeClient(options)->Shutdown().ok());
  }
  OtherKernixd other(folder, kProtocolVersion + 1);
  const absl::Status status = MakeClient(options)->Stats().status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::UNREACHABLE);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another protocol"));
  EXPECT_TRUE(MakeClient(options)->Shutdown().ok());
}

}  // namespace
}  // namespace kernix
