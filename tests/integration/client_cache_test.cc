// SPDX-License-Identifier: Apache-2.0
//
// A cache that loses entries while clients use it, and what its operator sees.
#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "client/connection/daemon_client.h"
#include "common/base/strings.h"
#include "tests/integration/client_world.h"

namespace kernix {
namespace {

using ::testing::HasSubstr;

class ClientCacheTest : public ClientWorld {
 protected:
  // Loads kernels 0..`kernels`-1 again and again from several threads, until each thread has done `rounds`. How many
  // loads did not work.
  int LoadFromManyThreads(Client& client, int kernels, int rounds) {
    constexpr int kThreads = 4;
    std::atomic<int> failed = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < rounds; ++round) {
          const auto module = LoadKernel(client, (t + round) % kernels);
          if (!module.ok()) {
            ++failed;
            ADD_FAILURE() << module.status();
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return failed;
  }

  // What the index counts is what lies there, once a new daemon has cleared up.
  void ExpectSound(DaemonClient& client) {
    ASSERT_TRUE(client.Shutdown().ok());
    const auto stats = client.Stats();
    ASSERT_TRUE(stats.ok()) << stats.status();
    const auto files = Env::Posix().ListDirectory(Path("store/artifacts"));
    ASSERT_TRUE(files.ok()) << files.status();
    uint64_t bytes = 0;
    for (const std::string& name : *files) bytes += Env::Posix().Stat(Path("store/artifacts/" + name))->size;
    EXPECT_EQ(stats->bytes(), bytes);
    EXPECT_EQ(
        stats->entries(),
        static_cast<uint64_t>(client.Ask<v1::ListCacheResponse>("ListCache", v1::ListCacheRequest())->entry_size()));
  }
};

TEST_F(ClientCacheTest, PurgingAllWhileOthersBuildHurtsNobody) {
  const auto client = MakeClient();
  ASSERT_TRUE(LoadKernel(*client, 0).ok());
  std::atomic<bool> done = false;
  int purges = 0;
  std::thread purger([&] {
    const auto own = MakeClient();
    v1::PurgeCacheRequest all;
    all.set_all(true);
    while (!done) {
      EXPECT_TRUE(own->Ask<v1::PurgeCacheResponse>("PurgeCache", all).ok());
      ++purges;
    }
  });
  EXPECT_EQ(LoadFromManyThreads(*client, /*kernels=*/3, /*rounds=*/6), 0);
  done = true;
  purger.join();
  EXPECT_GT(purges, 0);
  ExpectSound(*client);
}

TEST_F(ClientCacheTest, EvictionWhileOthersOpenArtifactsHurtsNobody) {
  const auto first = MakeClient();
  ASSERT_TRUE(LoadKernel(*first, 0).ok());
  const uint64_t limit = first->Stats()->bytes() * 5 / 2;  // two kernels, whatever the linker makes of one
  ASSERT_TRUE(first->Shutdown().ok());
  SetVariable("KERNIX_CACHE_LIMIT_BYTES", std::to_string(limit));
  const auto client = MakeClient();
  EXPECT_EQ(LoadFromManyThreads(*client, /*kernels=*/5, /*rounds=*/6), 0);
  const auto stats = client->Stats();
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_GT(stats->evictions(), 0u);
  EXPECT_LE(stats->bytes(), limit);
  ExpectSound(*client);
}

TEST_F(ClientCacheTest, KernixctlPurgesTheNameThatItIsTold) {
  const auto client = MakeClient();
  const std::string file = Path("kernel.cpp");
  ASSERT_TRUE(Env::Posix()
                  .WriteFile(file,
                             "#include \"brainevent/common.h\"\n// @BE f ret\n"
                             "void f(BE::Tensor out) { *static_cast<int*>(out.data_ptr()) = 1; }\n",
                             0600)
                  .ok());
  const auto source = Env::Posix().ReadFile(file);
  for (const char* name : {"first", "second"}) {
    const Source same{.text = *source, .label = "kernel.cpp", .path = file};
    ASSERT_TRUE(Load(*client, Language::kCpp, name, {same}, {}).ok());
  }
  EXPECT_EQ(client->Stats()->builds(), 1u);
  const auto purge = [](const std::string& name) {
    return RunProgram({KERNIXCTL_PROGRAM, "cache", "purge", "--name", name}).output;
  };
  EXPECT_THAT(purge("second"), HasSubstr("removed 1 entry"));
  EXPECT_THAT(purge("second"), HasSubstr("removed 0 entries"));
  EXPECT_THAT(RunProgram({KERNIXCTL_PROGRAM, "cache", "list"}).output, HasSubstr("first"));
  EXPECT_THAT(purge("first"), HasSubstr("removed 1 entry"));
  EXPECT_EQ(client->Stats()->entries(), 0u);
}

}  // namespace
}  // namespace kernix
