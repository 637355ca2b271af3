// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

v1::LoadEvent Progress(const std::string& step) {
  v1::LoadEvent event;
  event.mutable_progress()->set_step(step);
  return event;
}

v1::LoadEvent Output(std::string text) {
  v1::LoadEvent event;
  event.mutable_output()->set_text(std::move(text));
  return event;
}

TEST(EventQueue, KeepsTheOrder) {
  EventQueue queue;
  queue.Push(Output("a"));
  queue.Push(Progress("compile"));
  queue.Push(Output("b"));
  EXPECT_EQ(queue.Pop()->output().text(), "a");
  EXPECT_EQ(queue.Pop()->progress().step(), "compile");
  EXPECT_EQ(queue.Pop()->output().text(), "b");
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(EventQueue, NewProgressReplacesOldThatWaits) {
  EventQueue queue;
  queue.Push(Progress("compile"));
  queue.Push(Progress("link"));
  EXPECT_EQ(queue.Pop()->progress().step(), "link");
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, DropsOutputThatNobodyReadsAndSaysSoOnce) {
  EventQueue queue;
  const std::string piece(EventQueue::kMaxOutputBytes / 2, 'x');
  queue.Push(Output(piece));
  queue.Push(Output(piece));
  queue.Push(Output("too much"));
  queue.Push(Output("too much"));
  queue.Push(Progress("link"));
  EXPECT_EQ(queue.Pop()->output().text(), piece);
  EXPECT_EQ(queue.Pop()->output().text(), piece);
  EXPECT_NE(queue.Pop()->output().text().find("output dropped"), std::string::npos);
  EXPECT_TRUE(queue.Pop()->has_progress());
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, TakesOutputAgainOnceItIsRead) {
  EventQueue queue;
  const std::string all(EventQueue::kMaxOutputBytes, 'x');
  queue.Push(Output(all));
  queue.Push(Output("lost"));
  while (queue.Pop()) {
  }
  queue.Push(Output("seen"));
  EXPECT_EQ(queue.Pop()->output().text(), "seen");
}

using ::testing::HasSubstr;

constexpr uint64_t kLimit = 100;

v1::Blob Piece(const Digest& digest, std::string chunk, bool last) {
  v1::Blob blob;
  blob.set_digest(digest.Raw());
  blob.set_chunk(std::move(chunk));
  blob.set_last(last);
  return blob;
}

auto IsInvalid(const char* message) { return HasError(absl::StatusCode::kInvalidArgument, HasSubstr(message)); }

TEST(BlobReceiver, PutsPiecesTogether) {
  const Digest one = DigestOf("hello world");
  const Digest empty = DigestOf("");
  BlobReceiver receiver({one, empty}, kLimit);
  EXPECT_THAT(receiver.Add(Piece(one, "hello ", false)), IsOk());
  EXPECT_THAT(receiver.Add(Piece(one, "world", true)), IsOk());
  EXPECT_FALSE(receiver.complete());
  EXPECT_THAT(receiver.Add(Piece(empty, "", true)), IsOk());
  EXPECT_TRUE(receiver.complete());
  const build::HeaderContents contents = receiver.TakeContents();
  EXPECT_EQ(*contents.at(one), "hello world");
  EXPECT_EQ(*contents.at(empty), "");
}

TEST(BlobReceiver, TakesOnlyWhatWasAskedFor) {
  BlobReceiver receiver({DigestOf("a")}, kLimit);
  EXPECT_THAT(receiver.Add(Piece(DigestOf("b"), "b", true)), IsInvalid("not requested"));
  EXPECT_THAT(receiver.Add(Piece(DigestOf("a"), "a", true)), IsOk());
  EXPECT_THAT(receiver.Add(Piece(DigestOf("a"), "a", true)), IsInvalid("not requested"));
}

TEST(BlobReceiver, RefusesAMixOfTwo) {
  BlobReceiver receiver({DigestOf("aa"), DigestOf("bb")}, kLimit);
  EXPECT_THAT(receiver.Add(Piece(DigestOf("aa"), "a", false)), IsOk());
  EXPECT_THAT(receiver.Add(Piece(DigestOf("bb"), "b", false)), IsInvalid("before that of"));
}

TEST(BlobReceiver, ChecksTheContent) {
  BlobReceiver receiver({DigestOf("a")}, kLimit);
  EXPECT_THAT(receiver.Add(Piece(DigestOf("a"), "b", true)), IsInvalid("does not have that digest"));
  EXPECT_FALSE(receiver.complete());
}

TEST(BlobReceiver, KeepsTheLimit) {
  const std::string text(kLimit + 1, 'x');
  BlobReceiver receiver({DigestOf(text)}, kLimit);
  EXPECT_THAT(receiver.Add(Piece(DigestOf(text), text.substr(1), false)), IsOk());
  EXPECT_THAT(receiver.Add(Piece(DigestOf(text), "x", true)), IsInvalid("more than the"));
}

TEST(BlobReceiver, RefusesWhatIsNoDigest) {
  BlobReceiver receiver({DigestOf("a")}, kLimit);
  v1::Blob blob;
  blob.set_digest("short");
  EXPECT_EQ(receiver.Add(blob).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace

}  // namespace kernix::server
