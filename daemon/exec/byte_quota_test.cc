// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/byte_quota.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace kernix::exec {
namespace {

constexpr UserId kAlice{1};
constexpr UserId kBob{2};

MonotonicTime Soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

TEST(ByteQuotaTest, CountsWhatIsHeldOfEachUser) {
  ByteQuota quota(100);
  const auto first = quota.Take(kAlice, 60);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(quota.Take(kAlice, 41), nullptr);
  EXPECT_NE(quota.Take(kBob, 100), nullptr);
  auto second = quota.Take(kAlice, 40);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(quota.Take(kAlice, 1), nullptr);
  second.reset();
  EXPECT_NE(quota.Take(kAlice, 40), nullptr);
}

TEST(ByteQuotaTest, WhatIsLargerThanAllIsTakenAlone) {
  ByteQuota quota(100);
  const auto large = quota.Take(kAlice, 500);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(quota.Take(kAlice, 1), nullptr);
}

TEST(ByteQuotaTest, WithoutALimitEverythingIsTaken) {
  ByteQuota quota(0);
  const auto first = quota.Take(kAlice, UINT64_MAX / 4);
  EXPECT_NE(quota.Take(kAlice, UINT64_MAX / 4), nullptr);
}

TEST(ByteQuotaTest, WaitsUntilThereIsRoom) {
  ByteQuota quota(100);
  auto first = quota.Take(kAlice, 60);
  Cancellation cancellation;
  std::unique_ptr<ByteQuota::Share> second;
  std::thread waiter([&] { second = quota.Await(kAlice, 60, Soon(), &cancellation); });
  first.reset();
  waiter.join();
  EXPECT_NE(second, nullptr);
}

TEST(ByteQuotaTest, ACancelledOneWaitsNoLonger) {
  ByteQuota quota(100);
  const auto first = quota.Take(kAlice, 60);
  Cancellation cancellation;
  std::thread waiter([&] { EXPECT_EQ(quota.Await(kAlice, 60, Soon(), &cancellation), nullptr); });
  cancellation.Cancel();
  waiter.join();
}

TEST(ByteQuotaTest, WaitsNoLongerThanItShould) {
  ByteQuota quota(100);
  const auto first = quota.Take(kAlice, 60);
  Cancellation cancellation;
  EXPECT_EQ(quota.Await(kAlice, 60, MonotonicTime{}, &cancellation), nullptr);
  EXPECT_NE(quota.Await(kAlice, 40, MonotonicTime{}, &cancellation), nullptr);
}

// For example, an empty header or an empty request.
TEST(ByteQuotaTest, SharesOfNothingAreKeptApart) {
  ByteQuota quota(10);
  auto one = quota.Take(kAlice, 0);
  auto two = quota.Take(kAlice, 0);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, nullptr);
  one.reset();
  two.reset();
  EXPECT_NE(quota.Take(kAlice, 10), nullptr);
}

}  // namespace
}  // namespace kernix::exec
