// SPDX-License-Identifier: Apache-2.0
//
// Calls before, after, inside and in the middle of fork(). A child that hangs is killed, and the test's time-out ends a
// parent that does.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "common/base/error.h"
#include "tests/integration/client_world.h"
#include "tests/support/await.h"

namespace kernix {
namespace {

class ClientForkTest : public ClientWorld {
 protected:
  static int CallInChild(Client& client) {
    return ForkAndRun([&client] { return client.Info().ok() ? 0 : 1; });
  }
};

TEST_F(ClientForkTest, AChildUsesWhatItInherited) {
  const auto client = MakeClient();
  ASSERT_TRUE(client->Info().ok());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(CallInChild(*client), 0);
    EXPECT_TRUE(client->Info().ok());
  }
}

TEST_F(ClientForkTest, AChildStartsTheDaemonThatItsParentDidNot) {
  const auto client = MakeClient();
  EXPECT_EQ(CallInChild(*client), 0);
  EXPECT_TRUE(client->Info(/*start=*/false).ok());
}

TEST_F(ClientForkTest, ParentAndChildCallAtTheSameTime) {
  const auto client = MakeClient();
  ASSERT_TRUE(client->Info().ok());
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> child_ended{false};
    std::thread parent([&] {
      while (!child_ended) EXPECT_TRUE(client->Info().ok());
    });
    EXPECT_EQ(ForkAndRun([&client] {
                for (int k = 0; k < 5; ++k) {
                  if (!client->Info().ok()) return 1;
                }
                return 0;
              }),
              0);
    child_ended = true;
    parent.join();
  }
}

TEST_F(ClientForkTest, ThreadsCallWhileOthersFork) {
  const auto client = MakeClient();
  ASSERT_TRUE(LoadKernel(*client, 0).ok());
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&, i] {
      do {
        const bool ok = i == 0 ? LoadKernel(*client, 0).ok() : client->Info().ok();
        EXPECT_TRUE(ok);
        ++calls;
      } while (!stop);
    });
  }
  std::vector<std::thread> forkers;
  for (int i = 0; i < 2; ++i) {
    forkers.emplace_back([&] {
      for (int k = 0; k < 15; ++k) EXPECT_EQ(CallInChild(*client), 0);
    });
  }
  for (std::thread& forker : forkers) forker.join();
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(calls, 3);
}

TEST_F(ClientForkTest, AForkDuringAColdLoad) {
  const auto client = MakeClient();
  ASSERT_TRUE(client->Info().ok());
  std::atomic<bool> building{false};
  LoadOptions options;
  options.callbacks.progress = [&](std::string_view) { building = true; };
  absl::StatusOr<std::shared_ptr<Module>> module;
  std::thread loader([&] {
    module = LoadKernel(*client, 1, options);
    building = true;
  });
  Await("the build", [&] { return building.load(); });
  EXPECT_EQ(CallInChild(*client), 0);
  loader.join();
  EXPECT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(client->Stats()->builds(), 1u);
}

// The thread that loads forks in its own callback; both of it go on.
TEST_F(ClientForkTest, ACallbackForks) {
  const auto client = MakeClient();
  LoadOptions options;
  const pid_t parent = getpid();
  pid_t child = 0;
  options.callbacks.progress = [&](std::string_view) {
    if (child != 0 || getpid() != parent) return;
    child = fork();
    if (child == 0) alarm(60);
  };
  const auto module = LoadKernel(*client, 1, options);
  if (getpid() != parent) _exit(module.ok() ? 0 : 1);
  EXPECT_TRUE(module.ok()) << module.status();
  int status = -1;
  ASSERT_GT(child, 0);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ClientForkTest, ACallHasNoThread) {
  const auto client = MakeClient();
  size_t threads = 0;
  LoadOptions options;
  options.callbacks.progress = [&](std::string_view) {
    threads = std::max(threads, Env::Posix().ListDirectory("/proc/self/task")->size());
  };
  ASSERT_TRUE(LoadKernel(*client, 0, options).ok());
  EXPECT_EQ(threads, 1u);
}

TEST_F(ClientForkTest, ACancelledLoadEnds) {
  const auto client = MakeClient();
  LoadOptions options;
  bool building = false;
  options.callbacks.progress = [&](std::string_view) { building = true; };
  options.callbacks.cancelled = [&] { return building; };
  // Long enough to be asked: the whole of the standard library's headers.
  const auto module = LoadCppInline(*client, "slow",
                                    {"#include <bits/stdc++.h>\n#include <regex>\n#include \"brainevent/common.h\"\n"
                                     "// @BE f ret\nvoid f(BE::Tensor out) { static std::regex r(\"a*b\"); }\n"},
                                    options);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(KindOf(module.status()), v1::ErrorDetail::CANCELLED) << module.status();
}

}  // namespace
}  // namespace kernix
