// SPDX-License-Identifier: Apache-2.0
#include "client/connection/load_mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace kernix {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60'000};

TEST(LoadMailboxTest, NewsComeInOrderAndBeforeTheEnd) {
  LoadMailbox mailbox;
  mailbox.Push(WarningEvent{"first"});
  mailbox.Push(v1::Output());
  mailbox.Finish(v1::LoadResult());
  EXPECT_FALSE(mailbox.finished());
  EXPECT_EQ(std::get<WarningEvent>(*mailbox.Next(kLong)).text, "first");
  EXPECT_TRUE(std::holds_alternative<v1::Output>(*mailbox.Next(kLong)));
  EXPECT_TRUE(mailbox.finished());
  EXPECT_FALSE(mailbox.Next(kLong));
  EXPECT_TRUE(mailbox.TakeResult().ok());
}

TEST(LoadMailboxTest, NextGivesUpWhenItsPatienceEnds) {
  LoadMailbox mailbox;
  EXPECT_FALSE(mailbox.Next(milliseconds(1)));
  EXPECT_FALSE(mailbox.finished());
}

TEST(LoadMailboxTest, ABlobGoesToWhomeverAskedForIt) {
  LoadMailbox mailbox;
  const Digest wanted = DigestOf("wanted");
  std::thread loader([&] {
    const Digest asked = std::get<BlobWanted>(*mailbox.Next(kLong)).digest;
    // As if an earlier, interrupted attempt had requested this one.
    mailbox.GiveBlob(DigestOf("stale"), "stale");
    mailbox.GiveBlob(asked, "wanted");
  });
  const auto content = mailbox.FetchBlob(wanted);
  loader.join();
  ASSERT_TRUE(content.has_value());
  ASSERT_TRUE(content->ok());
  EXPECT_EQ(**content, "wanted");
}

TEST(LoadMailboxTest, AProvidersErrorComesThrough) {
  LoadMailbox mailbox;
  const Digest wanted = DigestOf("wanted");
  std::thread loader(
      [&] { mailbox.GiveBlob(std::get<BlobWanted>(*mailbox.Next(kLong)).digest, absl::AbortedError("gone")); });
  const auto content = mailbox.FetchBlob(wanted);
  loader.join();
  ASSERT_TRUE(content.has_value());
  EXPECT_TRUE(absl::IsAborted(content->status()));
}

TEST(LoadMailboxTest, WakeEndsTheWaitForABlob) {
  LoadMailbox mailbox;
  std::thread forker([&] {
    mailbox.Next(kLong);
    mailbox.Wake();
  });
  EXPECT_FALSE(mailbox.FetchBlob(DigestOf("x")).has_value());
  forker.join();
  EXPECT_FALSE(mailbox.FetchBlob(DigestOf("x")).has_value());
}

}  // namespace
}  // namespace kernix
