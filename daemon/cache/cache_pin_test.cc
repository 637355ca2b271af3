// SPDX-License-Identifier: Apache-2.0
//
// Entries that their users have pinned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "daemon/cache/sqlite.h"
#include "tests/support/cache_fixture.h"

namespace kernix::cache {
namespace {

using ::testing::HasSubstr;

constexpr UserId kUser{1000};  // of TestTag()
constexpr UserId kOther{7};

class CachePinTest : public CacheTest {
 protected:
  void Pin(const std::string& name, bool pinned = true) {
    EXPECT_GT(cache_->SetPinned({.name = name}, pinned).value().tags, 0u) << name;
  }
};

TEST_F(CachePinTest, AFullCacheDropsOthers) {
  Open(/*limit_bytes=*/8000);
  Insert(1, 1000, "kept");
  Pin("kept");
  for (int i = 2; i < 20; ++i) Insert(i);
  EXPECT_TRUE(Has(1));
  EXPECT_FALSE(Has(2));
  EXPECT_TRUE(Has(19));
  EXPECT_LE(Stats().bytes(), 8000u);
  Pin("kept", /*pinned=*/false);
  for (int i = 20; i < 30; ++i) Insert(i);
  EXPECT_FALSE(Has(1));
}

TEST_F(CachePinTest, PinsSurviveAReopeningAndANewBuildOfTheKey) {
  Open();
  Insert(1, 1000, "kept");
  Pin("kept");
  Insert(1, 1000, "kept");
  Open(/*limit_bytes=*/1);
  EXPECT_TRUE(Has(1));
  EXPECT_TRUE(cache_->List({})->front().pinned);
}

TEST_F(CachePinTest, WhatIsBuiltLaterUnderTheNameIsNotPinned) {
  Open();
  Insert(1, 1000, "name");
  Pin("name");
  Insert(2, 1000, "name");
  EXPECT_EQ(cache_->Purge({.spares_pinned = true})->tags, 1u);
  EXPECT_TRUE(Has(1));
  EXPECT_FALSE(Has(2));
}

TEST_F(CachePinTest, AUsersPinKeepsNothingForAnother) {
  Open(1 << 20);
  Insert(1, 1000, "kept");
  cache_->AddTag(TestKey(1), {"kept", kOther});
  ASSERT_EQ(cache_->SetPinned({.name = "kept", .owner = kUser}, true)->tags, 1u);
  cache_->SetLimits({.bytes = 1 << 20, .bytes_per_user = 1});
  EXPECT_TRUE(*cache_->Owns(kUser, DigestOf(TestArtifact(1))));
  EXPECT_FALSE(*cache_->Owns(kOther, DigestOf(TestArtifact(1))));
}

TEST_F(CachePinTest, PinnedBytesCountForTheirUser) {
  Open(1 << 20);
  for (int i = 1; i < 4; ++i) Insert(i, 1000, "kept");
  cache_->SetLimits({.bytes = 1 << 20, .bytes_per_user = 9000});
  ASSERT_THAT(cache_->SetPinned({.name = "kept", .owner = kUser}, true), IsOk());
  for (int i = 4; i < 20; ++i) Insert(i);
  EXPECT_TRUE(Has(1) && Has(2) && Has(3));
  EXPECT_LE(cache_->Holders().value()[kUser].bytes, 9000u);
}

TEST_F(CachePinTest, AUserPinsAnEighthOfTheCacheAndAllTogetherHalf) {
  Open(/*limit_bytes=*/80'000);
  Insert(1, 9000, "small");
  Insert(2, 9000, "large");
  ASSERT_THAT(cache_->SetPinned({.name = "small", .owner = kUser}, true), IsOk());
  const auto refused = cache_->SetPinned({.name = "large", .owner = kUser}, true);
  EXPECT_EQ(KindOf(refused.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(GetErrorDetail(refused.status()).message(), HasSubstr("of at most 10000"));
  EXPECT_FALSE(cache_->List({.name = "large"})->front().pinned);
  EXPECT_THAT(cache_->SetPinned({.name = "large"}, true), IsOk()) << "an administrator may";
  EXPECT_THAT(cache_->SetPinned({.name = "large", .owner = kUser}, false), IsOk()) << "less is never too much";
  Insert(3, 35'000, "huge");
  EXPECT_EQ(KindOf(cache_->SetPinned({.name = "huge"}, true).status()), v1::ErrorDetail::RESOURCE);
}

TEST_F(CachePinTest, AUserPinsHalfOfTheirOwnLimit) {
  Open(1 << 20);
  Insert(1, 1000, "kept");
  cache_->SetLimits({.bytes = 1 << 20, .bytes_per_user = 2000});
  EXPECT_EQ(KindOf(cache_->SetPinned({.name = "kept", .owner = kUser}, true).status()), v1::ErrorDetail::RESOURCE);
  cache_->SetLimits({.bytes = 1 << 20, .bytes_per_user = 4000});
  EXPECT_THAT(cache_->SetPinned({.name = "kept", .owner = kUser}, true), IsOk());
}

TEST_F(CachePinTest, ACacheThatIsFullOfPinsWorks) {
  Open(/*limit_bytes=*/8000);
  Insert(1, 3000, "kept");
  Pin("kept");
  cache_->SetLimits({.bytes = 2000});
  EXPECT_TRUE(Has(1));
  Insert(2);
  EXPECT_TRUE(Has(2));
  Insert(3);
  EXPECT_TRUE(Has(1) && Has(3));
  EXPECT_FALSE(Has(2));
}

}  // namespace
}  // namespace kernix::cache
