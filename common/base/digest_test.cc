// SPDX-License-Identifier: Apache-2.0
#include "common/base/digest.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/hash/hash_testing.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

// From FIPS 180-2.
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST(DigestTest, IsSha256) {
  EXPECT_EQ(DigestOf("abc").Hex(), kAbc);
  EXPECT_EQ(DigestOf("").Hex(), kEmpty);
}

TEST(DigestTest, PiecesGiveTheSameAsTheWhole) {
  Sha256 sha;
  sha.Update("a");
  sha.Update("");
  sha.Update("bc");
  EXPECT_EQ(sha.Finish().Hex(), kAbc);
}

TEST(DigestTest, TextAndBytesComeBack) {
  const Digest digest = DigestOf("x");
  EXPECT_EQ(Digest::FromHex(digest.Hex()).value(), digest);
  EXPECT_EQ(Digest::FromRaw(digest.Raw()).value(), digest);
  EXPECT_EQ(Digest::FromHex("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD").value().Hex(), kAbc);
}

TEST(DigestTest, RefusesOtherText) {
  const std::string hex = kAbc;
  EXPECT_THAT(Digest::FromHex(hex.substr(1)), HasError(absl::StatusCode::kInvalidArgument, testing::HasSubstr("63")));
  EXPECT_THAT(Digest::FromHex("g" + hex.substr(1)),
              HasError(absl::StatusCode::kInvalidArgument, testing::HasSubstr("g" + hex.substr(1))));
  EXPECT_THAT(Digest::FromRaw("short"), HasError(absl::StatusCode::kInvalidArgument, testing::HasSubstr("5")));
}

TEST(DigestTest, OrdersAndHashes) {
  EXPECT_LT(DigestOf("abc"), DigestOf(""));
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly({DigestOf("a"), DigestOf("b"), Digest{}}));
}

// To a hasher that forgets a length, a name or a type, each of these sequences looks like another one.
TEST(CanonicalHasherTest, DifferentSequencesDiffer) {
  const Digest d{};
  const std::set<Digest> digests = {
      CanonicalHasher("k").Finish(),
      CanonicalHasher("k2").Finish(),
      CanonicalHasher("k").Field("a", "bc").Finish(),
      CanonicalHasher("k").Field("ab", "c").Finish(),
      CanonicalHasher("ka").Field("", "bc").Finish(),
      CanonicalHasher("k").Field("a", "").Field("bc", "").Finish(),
      CanonicalHasher("k").Field("a", std::string_view("\1\0\0\0\0\0\0\0", 8)).Finish(),
      CanonicalHasher("k").Field("a", uint64_t{1}).Finish(),
      CanonicalHasher("k").List("a", 1).Finish(),
      CanonicalHasher("k").Field("a", d).Finish(),
      CanonicalHasher("k").Field("a", d.Raw()).Finish(),
      CanonicalHasher("k").List("a", 1).Field("x", "1").List("b", 1).Field("x", "2").Finish(),
      CanonicalHasher("k").List("a", 2).Field("x", "1").Field("x", "2").List("b", 0).Finish(),
  };
  EXPECT_EQ(digests.size(), 13u);
}

// Keys are stored on disk, so this value must never change.
TEST(CanonicalHasherTest, StaysWhatItIs) {
  EXPECT_EQ(CanonicalHasher("domain").Field("name", "value").Field("n", uint64_t{7}).List("l", 2).Finish().Hex(),
            "153b86e5ef6ef13be79997f22c678bf99f7314622c9f9bf67adac48cf87153a2");
}

}  // namespace
}  // namespace kernix
