// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/blob_receiver.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

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
