// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/blob_transfer.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/test_util.h"

namespace kernix::remote {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::vector<exec::BlobDigest> OfSizes(const std::vector<uint64_t>& sizes) {
  std::vector<exec::BlobDigest> digests;
  for (const uint64_t size : sizes) digests.push_back({DigestOf(std::to_string(digests.size())), size});
  return digests;
}

TEST(BlobBatchesTest, TheEnginesLimitHoldsIfItNamesOne) {
  EXPECT_EQ(UsableBatchBytes(0), 2 * kMiB - 65536);
  EXPECT_EQ(UsableBatchBytes(-1), 2 * kMiB - 65536);
  EXPECT_EQ(UsableBatchBytes(1000), 1000U);
  EXPECT_EQ(UsableBatchBytes(std::numeric_limits<int64_t>::max()), 4 * kMiB - 65536);
}

TEST(BlobBatchesTest, FillsOneMessageAfterTheOther) {
  const BlobBatches split = SplitIntoBatches(OfSizes({400, 400, 400, 900, 100}), 1128);
  EXPECT_EQ(split.batches, (std::vector<std::vector<size_t>>{{0, 1}, {2}, {3}, {4}}));
  EXPECT_TRUE(split.streams.empty());
}

TEST(BlobBatchesTest, ALargeBlobTravelsAlone) {
  const BlobBatches split = SplitIntoBatches(OfSizes({10, 1001, 10, 872, 873}), 1000);
  EXPECT_EQ(split.batches, (std::vector<std::vector<size_t>>{{0, 2}, {3}}));
  EXPECT_EQ(split.streams, (std::vector<size_t>{1, 4}));
}

TEST(BlobBatchesTest, ManyTinyBlobsCountWithWhatStandsAroundThem) {
  const BlobBatches split = SplitIntoBatches(OfSizes(std::vector<uint64_t>(50'000, 1)), 4 * kMiB);
  EXPECT_EQ(split.batches.size(), 2U);
}

TEST(BlobBatchesTest, AnyClaimedSizeIsSplit) {
  const BlobBatches split = SplitIntoBatches(OfSizes({std::numeric_limits<int64_t>::max()}), 1000);
  EXPECT_EQ(split.streams.size(), 1U);
}

}  // namespace
}  // namespace kernix::remote
