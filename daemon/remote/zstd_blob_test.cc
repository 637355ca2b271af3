// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/zstd_blob.h"

#include <gtest/gtest.h>

#include "tests/support/test_util.h"

namespace kernix::remote {
namespace {

using ::testing::HasSubstr;

TEST(ZstdBlobTest, WhatWasCompressedComesBack) {
  const std::string bytes(100'000, 'x');
  const std::string compressed = CompressBlob(bytes).value();
  EXPECT_LT(compressed.size(), 1000U);
  EXPECT_EQ(DecompressBlob(compressed, bytes.size()).value(), bytes);
}

TEST(ZstdBlobTest, SeveralFramesAreOneBlob) {
  const std::string compressed = CompressBlob("first, ").value() + CompressBlob("second").value();
  EXPECT_EQ(DecompressBlob(compressed, 13).value(), "first, second");
}

TEST(ZstdBlobTest, AnotherSizeOrNoZstdIsAnError) {
  const std::string compressed = CompressBlob("0123456789").value();
  for (const uint64_t size : {uint64_t{9}, uint64_t{11}, uint64_t{0}}) {
    EXPECT_THAT(DecompressBlob(compressed, size).status(), HasError(absl::StatusCode::kDataLoss, HasSubstr("zstd")));
  }
  EXPECT_THAT(DecompressBlob("no zstd", 7).status(), HasError(absl::StatusCode::kDataLoss, HasSubstr("zstd")));
  EXPECT_THAT(DecompressBlob(compressed.substr(0, compressed.size() - 1), 10).status(),
              HasError(absl::StatusCode::kDataLoss, HasSubstr("zstd")));
  EXPECT_THAT(DecompressBlob("", 10).status(), HasError(absl::StatusCode::kDataLoss, HasSubstr("0 bytes")));
}

}  // namespace
}  // namespace kernix::remote
