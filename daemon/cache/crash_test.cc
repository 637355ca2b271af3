// SPDX-License-Identifier: Apache-2.0
//
// After a process is killed in the middle of inserting, its store has everything that was acknowledged, with the right
// content, and serves nothing wrong.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <random>

#include "common/os/unique_fd.h"
#include "daemon/cache/cache.h"
#include "tests/support/fault_env.h"
#include "tests/support/test_util.h"
#include "tests/support/testing_entries.h"

namespace kernix::cache {
namespace {

constexpr uint64_t kLimit = 20'000;  // small, so that the killed process evicts as well
constexpr int kKept = 10;            // the newest entries that must fit into the limit

size_t SizeOf(int i) { return 500 + static_cast<size_t>(i) * 37 % 1000; }

// Runs in the child: inserts entry after entry, and reports each through `acknowledgements`.
void InsertUntilKilled(Env& env, const std::string& directory, int first, int acknowledgements) {
  auto cache = Cache::Open(env, {directory, kLimit});
  if (!cache.ok()) _exit(1);
  for (int i = first;; ++i) {
    if (!(*cache)->Insert(TestEntry(i), TestTag(), TestArtifact(i, SizeOf(i))).ok()) _exit(2);
    (*cache)->Touch(TestKey(i), {"module", UserId{1000}});
    if (write(acknowledgements, &i, sizeof(i)) != sizeof(i)) _exit(3);
  }
}

// A child that inserts, and its acknowledgements.
class Victim {
 public:
  Victim(const std::string& directory, int first, const std::function<void(FaultEnv&)>& prepare) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) abort();
    acknowledgements_ = UniqueFd(ends[0]);
    UniqueFd write_end(ends[1]);
    pid_ = fork();
    if (pid_ != 0) return;
    FaultEnv env(Env::Posix());
    prepare(env);
    InsertUntilKilled(env, directory, first, write_end.get());
  }

  // The next acknowledged entry; -1 if the child is dead.
  int Next() {
    int i = -1;
    return read(acknowledgements_.get(), &i, sizeof(i)) == sizeof(i) ? i : -1;
  }

  void Kill() { kill(pid_, SIGKILL); }

  // The signal that ended it.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  UniqueFd acknowledgements_;
  pid_t pid_ = -1;
};

// `last`: the newest acknowledged entry, -1 for none.
void CheckStore(const std::string& directory, int last) {
  auto cache = Cache::Open(Env::Posix(), {directory, kLimit});
  ASSERT_THAT(cache, IsOk());
  for (int i = std::max(0, last - kKept + 1); i <= last; ++i) {
    const auto entry = (*cache)->Find(TestKey(i));
    ASSERT_THAT(entry, IsOk());
    ASSERT_TRUE(entry->has_value()) << "entry " << i << " of " << last << " was acknowledged and is gone";
    EXPECT_EQ((*entry)->detail.function(0).name(), StrCat("function_", i));
  }
  const auto entries = (*cache)->List({});
  ASSERT_THAT(entries, IsOk());
  uint64_t bytes = 0;
  for (const ListedEntry& listed : *entries) {
    const Entry& entry = listed.entry;
    const auto content = ReadBlob(**cache, entry.artifact);
    ASSERT_THAT(content, IsOk());
    bytes += content->size();
    const int i = std::stoi(content->substr(std::string("artifact ").size()));
    EXPECT_EQ(entry.key, TestKey(i)) << "an entry serves somebody else's artifact";
    EXPECT_EQ(*content, TestArtifact(i, SizeOf(i)));
  }
  const v1::GetCacheStatsResponse stats = (*cache)->Stats();
  EXPECT_EQ(stats.bytes(), bytes);
  EXPECT_LE(bytes, kLimit);
}

TEST(CrashTest, KilledAtRandomPointsOverAndOver) {
  const ScratchDirectory folder;
  std::mt19937 random(12345);
  int last = -1;
  for (int round = 0; round < 25; ++round) {
    Victim victim(folder / "store", last + 1, [](FaultEnv&) {});
    // The child continues until we kill it: that makes the moment random.
    for (int n = static_cast<int>(random() % 8); n > 0; --n) last = std::max(last, victim.Next());
    victim.Kill();
    ASSERT_EQ(victim.Wait(), SIGKILL);
    for (int i = victim.Next(); i >= 0; i = victim.Next()) last = i;
    ASSERT_NO_FATAL_FAILURE(CheckStore(folder / "store", last));
  }
  EXPECT_GT(last, 20);
}

// The process dies when it makes the `nth` such call.
Fault KillAt(Operation operation, int nth) {
  Fault fault;
  fault.operation = operation;
  fault.nth = nth;
  fault.before = [] { raise(SIGKILL); };
  return fault;
}

TEST(CrashTest, KilledAtEveryCallThatChangesFiles) {
  for (const Operation operation : {Operation::kCreateDirectories, Operation::kLockFile, Operation::kWriteFile,
                                    Operation::kRemoveTree, Operation::kWriteFileDurably, Operation::kRemoveFile}) {
    const ScratchDirectory folder;
    int last = -1;
    for (int nth = 1; nth <= 6; ++nth) {
      Victim victim(folder / "store", last + 1, [&](FaultEnv& env) {
        env.Inject(KillAt(operation, nth));
        // Also ends a child that makes too few of these calls.
        env.Inject(KillAt(Operation::kWriteFileDurably, 12));
      });
      ASSERT_EQ(victim.Wait(), SIGKILL);
      for (int i = victim.Next(); i >= 0; i = victim.Next()) last = i;
      ASSERT_NO_FATAL_FAILURE(CheckStore(folder / "store", last));
    }
    EXPECT_GT(last, 0);
  }
}

}  // namespace
}  // namespace kernix::cache
