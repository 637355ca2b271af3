// SPDX-License-Identifier: Apache-2.0
//
// The order in which a store's files reach the disk. The fault twin of Env sits above the system calls. This program
// therefore puts itself between the store (and SQLite) and libc: its own fsync() and similar functions note each call
// and pass it on to the kernel.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/paths.h"
#include "daemon/cache/cache.h"
#include "tests/support/test_util.h"
#include "tests/support/testing_entries.h"

namespace kernix::cache {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

std::string PathOfDescriptor(int fd) {
  std::array<char, 4096> path{};
  const ssize_t size = readlink(StrCat("/proc/self/fd/", fd).c_str(), path.data(), path.size());
  return size < 0 ? "" : std::string(path.data(), static_cast<size_t>(size));
}

// Records the calls that change or sync files below one folder, during its lifetime. At most one may exist at a time.
class CallLog {
 public:
  explicit CallLog(std::string folder) : folder_(std::move(folder)) { current = this; }
  ~CallLog() { current = nullptr; }
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  // Notes a run of the same call on the same file once.
  static void Note(const std::string& call, const std::string& path) {
    if (current == nullptr || !absl::StartsWith(path, current->folder_)) return;
    const std::string line = StrCat(call, " ", NameOf(path.substr(current->folder_.size())));
    if (current->calls_.empty() || current->calls_.back() != line) current->calls_.push_back(line);
  }

  const std::vector<std::string>& calls() const { return calls_; }

  static inline int failing_sync = 0;  // the n-th sync from here fails

 private:
  // Temporary files have random names.
  static std::string NameOf(const std::string& path) { return absl::EndsWith(path, ".tmp") ? "temporary" : path; }

  static inline CallLog* current = nullptr;
  const std::string folder_;
  std::vector<std::string> calls_;
};

int Sync(int fd, long call) {
  CallLog::Note("sync", PathOfDescriptor(fd));
  if (CallLog::failing_sync > 0 && --CallLog::failing_sync == 0) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(call, fd));
}

ssize_t WriteAt(int fd, const void* data, size_t size, off_t offset) {
  CallLog::Note("write", PathOfDescriptor(fd));
  return syscall(SYS_pwrite64, fd, data, size, offset);
}

}  // namespace
}  // namespace kernix::cache

#pragma GCC visibility push(default)  // so that SQLite's library uses them, too
extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  kernix::cache::CallLog::Note("write", kernix::cache::PathOfDescriptor(fd));
  return syscall(SYS_write, fd, data, size);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return kernix::cache::WriteAt(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return kernix::cache::WriteAt(fd, data, size, offset);
}

int fsync(int fd) { return kernix::cache::Sync(fd, SYS_fsync); }

int fdatasync(int fd) { return kernix::cache::Sync(fd, SYS_fdatasync); }

int rename(const char* from, const char* to) noexcept {
  kernix::cache::CallLog::Note("rename", from);
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

}  // extern "C"
#pragma GCC visibility pop

namespace kernix::cache {
namespace {

class DurabilityTest : public testing::Test {
 protected:
  DurabilityTest() : cache_(Cache::Open(Env::Posix(), {folder_ / "store"}).value()) {}

  std::string InStore(const std::string& name) const { return folder_ / "store/" + name; }

  absl::Status Insert(int i) { return cache_->Insert(TestEntry(i), TestTag(), TestArtifact(i)); }

  ScratchDirectory folder_;
  const std::unique_ptr<Cache> cache_;
};

TEST_F(DurabilityTest, AnArtifactIsOnTheDiskBeforeItHasItsNameAndItsNameBeforeTheIndexHasIt) {
  const CallLog log(InStore(""));
  ASSERT_THAT(Insert(1), IsOk());
  EXPECT_THAT(log.calls(), ElementsAre("write temporary", "sync temporary", "rename temporary", "sync artifacts",
                                       "write private/index.sqlite-wal", "sync private/index.sqlite-wal",
                                       "sync private"));  // with the index's name, since it is new
}

TEST_F(DurabilityTest, AnEntryIsCommittedOnlyWhenEverySyncHasWorked) {
  for (int nth = 1; nth <= 3; ++nth) {
    CallLog::failing_sync = nth;
    EXPECT_FALSE(Insert(1).ok()) << "sync " << nth << " failed";
    EXPECT_EQ(CallLog::failing_sync, 0);
    EXPECT_FALSE(cache_->Find(TestKey(1))->has_value()) << "sync " << nth << " failed";
  }
  EXPECT_THAT(Insert(1), IsOk());
}

TEST(StoreLayoutTest, TheLayoutsNumberIsOnTheDiskAfterTheFolderThatItSpeaksOf) {
  const ScratchDirectory folder;
  const CallLog log(folder / "store");
  ASSERT_THAT(Cache::Open(Env::Posix(), {folder / "store"}), IsOk());
  std::vector<std::string> calls = log.calls();
  calls.resize(std::min<size_t>(calls.size(), 6));
  EXPECT_THAT(calls, ElementsAre("write /private/owner", "write temporary", "sync temporary", "rename temporary",
                                 "sync ", testing::_));
}

TEST(StoreLayoutTest, ANewIndexIsNotAwaitedBecauseItHoldsNothingYet) {
  const ScratchDirectory folder;
  const CallLog log(folder / "store");
  const auto cache = Cache::Open(Env::Posix(), {folder / "store"});  // its end syncs
  ASSERT_THAT(cache, IsOk());
  EXPECT_THAT(log.calls(), Contains(StartsWith("write /private/index.sqlite")));
  EXPECT_THAT(log.calls(), Not(Contains(StartsWith("sync /private/"))));
}

}  // namespace
}  // namespace kernix::cache
