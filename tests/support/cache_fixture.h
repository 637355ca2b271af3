// SPDX-License-Identifier: Apache-2.0
//
// For tests: a cache in a scratch folder.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "common/base/paths.h"
#include "common/os/env.h"
#include "daemon/cache/cache.h"
#include "tests/support/fault_env.h"
#include "tests/support/test_util.h"
#include "tests/support/testing_entries.h"

namespace kernix::cache {

// Real files, injected faults, and a clock that the test controls.
class TestEnv : public FaultEnv {
 public:
  TestEnv() : FaultEnv(Env::Posix()) {}
  int64_t UnixMillis() override { return now; }
  MonotonicTime Now() override { return MonotonicTime(Duration(now)); }
  std::atomic<int64_t> now{1'000'000};
};

class CacheTest : public ::testing::Test {
 protected:
  std::string store() const { return folder_ / "store"; }

  void Open(uint64_t limit_bytes = 1 << 30, Duration lend_time = Duration(0)) {
    cache_.reset();
    auto opened = Cache::Open(env_, {store(), limit_bytes, lend_time});
    ASSERT_TRUE(opened.ok()) << opened.status();
    cache_ = *std::move(opened);
  }

  // Each insert happens a millisecond after the previous one.
  void Insert(int i, size_t size = 1000, const std::string& name = "module") {
    ++env_.now;
    const absl::Status status = cache_->Insert(TestEntry(i), TestTag(name), TestArtifact(i, size));
    ASSERT_TRUE(status.ok()) << status;
  }

  bool Has(int i) {
    const auto entry = cache_->Find(TestKey(i));
    EXPECT_TRUE(entry.ok()) << entry.status();
    return entry.ok() && entry->has_value();
  }

  v1::GetCacheStatsResponse Stats() { return cache_->Stats(); }

  std::string BlobOf(int i, size_t size = 1000) { return cache_->BlobPath(DigestOf(TestArtifact(i, size))); }

  int FilesInBlobs() { return static_cast<int>(Env::Posix().ListDirectory(JoinPath(store(), "artifacts"))->size()); }

  ScratchDirectory folder_;
  TestEnv env_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace kernix::cache
