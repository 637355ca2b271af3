// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "daemon/cache/store_folder.h"
#include "tests/support/cache_fixture.h"

namespace kernix::cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The cache of CacheTest is that of the image; it stays open, as after a kill: its entries are in the log of its index.
class LayersTest : public CacheTest {
 protected:
  LayersTest() {
    Open();
    Insert(1);
    Insert(2);
  }

  absl::StatusOr<std::unique_ptr<Cache>> OpenOver(std::vector<std::string> layers) {
    return Cache::Open(env_, {.directory = folder_ / "own", .read_directories = std::move(layers)});
  }

  // What the log says about `layer`, without which the cache opens.
  std::string Refusal(const std::string& layer) {
    testing::internal::CaptureStderr();
    const auto own = OpenOver({layer});
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_THAT(own, IsOk());
    EXPECT_EQ((*own)->Find(TestKey(1)).value(), std::nullopt);
    EXPECT_EQ((*own)->toolchain_directories().size(), 1u) << "it is not asked for anything";
    return log;
  }
};

TEST_F(LayersTest, WhatTheOwnStoreLacksIsFoundInTheLayersAndStaysThere) {
  const auto other = Cache::Open(env_, {.directory = folder_ / "other"});
  ASSERT_THAT(other, IsOk());
  ASSERT_THAT((*other)->Insert(TestEntry(3), TestTag("module"), TestArtifact(3)), IsOk());
  const auto own = OpenOver({store(), folder_ / "other"});
  ASSERT_THAT(own, IsOk());
  for (const int i : {1, 2, 3}) {
    const auto entry = (*own)->Find(TestKey(i)).value();
    ASSERT_TRUE(entry.has_value()) << i;
    EXPECT_THAT((*own)->BlobPath(entry->artifact), StartsWith(i == 3 ? folder_ / "other" : store()));
    EXPECT_EQ(ReadBlob(**own, entry->artifact).value(), TestArtifact(i));
    (*own)->Touch(TestKey(i), TestTag("module"));
  }
  EXPECT_EQ((*own)->Find(TestKey(4)).value(), std::nullopt);
  EXPECT_THAT((*own)->Flush(), IsOk());
  EXPECT_EQ((*own)->Stats().entries(), 0u);
  EXPECT_EQ((*own)->Stats().hits(), 3u);
}

TEST_F(LayersTest, TheFirstIsWrittenAndComesFirst) {
  const auto own = OpenOver({store()});
  ASSERT_THAT((*own)->Insert(TestEntry(1), TestTag("module"), TestArtifact(1)), IsOk());
  ASSERT_THAT((*own)->Insert(TestEntry(5), TestTag("module"), TestArtifact(5)), IsOk());
  for (const int i : {1, 5}) {
    EXPECT_THAT((*own)->BlobPath((*own)->Find(TestKey(i)).value()->artifact), StartsWith(folder_ / "own"));
  }
  EXPECT_EQ(FilesInBlobs(), 2);
  EXPECT_FALSE(Has(5)) << "the layer gets nothing";
  EXPECT_THAT((*own)->Purge({}), IsOk());
  EXPECT_THAT((*own)->BlobPath((*own)->Find(TestKey(1)).value()->artifact), StartsWith(store()));
}

TEST_F(LayersTest, AnArtifactThatALayerHasLostIsAMiss) {
  const auto own = OpenOver({store()});
  ASSERT_TRUE(env_.RemoveTree(BlobOf(1)).ok());
  EXPECT_EQ((*own)->Find(TestKey(1)).value(), std::nullopt);
  EXPECT_TRUE((*own)->Find(TestKey(2)).value().has_value());
}

TEST_F(LayersTest, OneThatIsNoStoreOrThatOthersCanFillIsLeftOut) {
  EXPECT_THAT(Refusal(folder_ / "nothing"),
              AllOf(HasSubstr("store_left_out"), HasSubstr(folder_ / "nothing"), HasSubstr("KERNIX_CACHE_DIR")));
  {
    const auto own = OpenOver({folder_ / "nothing", store()});
    EXPECT_THAT((*own)->BlobPath((*own)->Find(TestKey(1)).value()->artifact), StartsWith(store())) << "others are read";
  }
  ASSERT_EQ(chmod((store() + "/artifacts").c_str(), 0777), 0);
  EXPECT_THAT(Refusal(store()), HasSubstr("lets users other than its owner"));
  ASSERT_EQ(chmod((store() + "/artifacts").c_str(), 0711), 0);
  EXPECT_THAT(OpenOver({store()}), IsOk());
}

}  // namespace
}  // namespace kernix::cache
