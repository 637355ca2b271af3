// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/file_digests.h"

#include <gtest/gtest.h>

#include "tests/support/fault_env.h"
#include "tests/support/mem_env.h"

namespace kernix::toolchain {
namespace {

class FileDigestsTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) { ASSERT_TRUE(mem_.WriteFile("/f", text, 0644).ok()); }
  int Reads() const { return env_.Calls(Operation::kReadFile); }

  MemEnv mem_;
  FaultEnv env_{mem_};
  FileDigests digests_{env_};
};

TEST_F(FileDigestsTest, ReadsAFileOnce) {
  Write("one");
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf("one"));
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf("one"));
  EXPECT_EQ(Reads(), 1);
}

TEST_F(FileDigestsTest, ReadsALargeFileInPiecesAndThroughLinks) {
  const std::string large(5'000'000, 'x');
  Write(large);
  ASSERT_TRUE(mem_.CreateSymlink("/f", "/link").ok());
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf(large));
  EXPECT_EQ(digests_.Get("/link").value(), DigestOf(large));
  EXPECT_EQ(Reads(), 0);
  env_.Inject({.operation = Operation::kOpenFile, .error = absl::InternalError("not that way")});
  Write(large + "y");
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf(large + "y"));
  EXPECT_EQ(Reads(), 1);
}

TEST_F(FileDigestsTest, ReadsAgainWhatHasChanged) {
  Write("one");
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf("one"));
  Write("two");  // same length as before
  EXPECT_EQ(digests_.Get("/f").value(), DigestOf("two"));
  EXPECT_EQ(Reads(), 2);
}

TEST_F(FileDigestsTest, WhatChangesWhileItIsReadIsNotRemembered) {
  Write("one");
  Fault change{.operation = Operation::kReadFile, .match = "/f"};
  change.before = [&] { Write("two"); };
  env_.Inject(change);
  ASSERT_TRUE(digests_.Get("/f").ok());
  ASSERT_TRUE(digests_.Get("/f").ok());
  EXPECT_EQ(Reads(), 2);
}

TEST_F(FileDigestsTest, TellsSinceWhenTheFileIsInItsState) {
  Write("one");
  const auto first = digests_.GetContent("/f").value();
  mem_.AdvanceClock(Duration(1000));
  EXPECT_EQ(digests_.GetContent("/f")->since, first.since);
  Write("one");  // same content with a new time stamp: the content in between is unknown
  EXPECT_EQ(digests_.GetContent("/f")->digest, first.digest);
  EXPECT_GT(digests_.GetContent("/f")->since, first.since);
}

// The slower of two readers must not make the state of the file look newer than it is.
TEST_F(FileDigestsTest, WhoeverReadsItFirstSaysSinceWhen) {
  Write("one");
  MonotonicTime first;
  Fault other{.operation = Operation::kReadFile, .match = "/f"};
  other.before = [&] {
    first = digests_.GetContent("/f")->since;
    mem_.AdvanceClock(Duration(1000));
  };
  env_.Inject(other);
  EXPECT_EQ(digests_.GetContent("/f")->since, first);
  EXPECT_EQ(digests_.GetContent("/f")->since, first);
  EXPECT_EQ(Reads(), 2);
}

TEST_F(FileDigestsTest, ALaterProcessNeedNotReadWhatASettledFileHolds) {
  Write("one");
  mem_.AdvanceClock(Duration(10'000));
  ASSERT_TRUE(digests_.Get("/f").ok());
  const std::vector<KnownFile> news = digests_.TakeNews();
  ASSERT_EQ(news.size(), 1u);
  EXPECT_TRUE(digests_.TakeNews().empty());

  FileDigests later(env_);
  later.Remember(news);
  EXPECT_EQ(later.Get("/f").value(), DigestOf("one"));
  EXPECT_EQ(Reads(), 1);
  EXPECT_TRUE(later.TakeNews().empty());
  Write("two");
  EXPECT_EQ(later.Get("/f").value(), DigestOf("two"));
}

TEST_F(FileDigestsTest, WhatCouldNotBeSavedIsToldAgainOnceAndAsItIsNow) {
  Write("one");
  mem_.AdvanceClock(Duration(10'000));
  ASSERT_TRUE(digests_.Get("/f").ok());
  const std::vector<KnownFile> unsaved = digests_.TakeNews();
  Write("two");
  mem_.AdvanceClock(Duration(10'000));
  ASSERT_TRUE(digests_.Get("/f").ok());
  digests_.PutBackNews(unsaved);
  const std::vector<KnownFile> news = digests_.TakeNews();
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].digest, DigestOf("two"));
  digests_.PutBackNews(news);
  EXPECT_EQ(digests_.TakeNews().size(), 1u);
}

TEST_F(FileDigestsTest, WhatWasJustWrittenIsNotToldToALaterProcess) {
  Write("one");
  mem_.AdvanceClock(Duration(50));
  ASSERT_TRUE(digests_.Get("/f").ok());
  EXPECT_TRUE(digests_.TakeNews().empty());
}

TEST_F(FileDigestsTest, AMissingFileIsAnErrorUntilItIsThere) {
  EXPECT_EQ(digests_.Get("/f").status().code(), absl::StatusCode::kNotFound);
  Write("one");
  EXPECT_TRUE(digests_.Get("/f").ok());
}

}  // namespace

}  // namespace kernix::toolchain
