// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/header_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kSize = 1000;
constexpr uint64_t kRoomForTwo = 3000;

std::string Text(char c) { return std::string(kSize, c); }

constexpr UserId kUser{1000};
constexpr UserId kOther{1001};

void Add(HeaderCache& cache, const std::string& text, UserId user = kUser) {
  cache.Add(user, {{DigestOf(text), exec::MakeContent(text)}});
}

bool Has(HeaderCache& cache, const std::string& text, UserId user = kUser) {
  const HeaderContents found = cache.Find(user, {DigestOf(text)});
  if (found.empty()) return false;
  EXPECT_EQ(*found.at(DigestOf(text)), text);
  return true;
}

TEST(HeaderCacheTest, FindsWhatItHasOfWhatIsAskedFor) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  const HeaderContents found = cache.Find(kUser, {DigestOf(Text('a')), DigestOf(Text('b'))});
  EXPECT_EQ(found.size(), 1u);
  EXPECT_EQ(*found.at(DigestOf(Text('a'))), Text('a'));
}

TEST(HeaderCacheTest, KeepsWhatWasUsedLast) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  Add(cache, Text('b'));
  EXPECT_TRUE(Has(cache, Text('a')));
  Add(cache, Text('c'));
  EXPECT_TRUE(Has(cache, Text('a')));
  EXPECT_FALSE(Has(cache, Text('b')));
  EXPECT_TRUE(Has(cache, Text('c')));
}

TEST(HeaderCacheTest, WhatIsTooLargeDoesNotDriveOutTheRest) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  Add(cache, std::string(2 * kRoomForTwo, 'x'));
  EXPECT_TRUE(Has(cache, Text('a')));
  EXPECT_FALSE(Has(cache, std::string(2 * kRoomForTwo, 'x')));
}

TEST(HeaderCacheTest, AddingTheSameAgainTakesNoRoom) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  for (int i = 0; i < 10; ++i) Add(cache, Text('b'));
  EXPECT_TRUE(Has(cache, Text('a')));
}

TEST(HeaderCacheTest, AContentServesWhoHasSentIt) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  EXPECT_FALSE(Has(cache, Text('a'), kOther));
  Add(cache, Text('a'), kOther);
  EXPECT_TRUE(Has(cache, Text('a'), kOther));
  EXPECT_TRUE(Has(cache, Text('a')));
}

TEST(HeaderCacheTest, WhoHasMostMakesRoom) {
  HeaderCache cache(kRoomForTwo);
  Add(cache, Text('a'));
  for (const char c : {'b', 'c', 'd'}) Add(cache, Text(c), kOther);
  EXPECT_TRUE(Has(cache, Text('a')));
  EXPECT_FALSE(Has(cache, Text('c'), kOther));
  EXPECT_TRUE(Has(cache, Text('d'), kOther));
}

// Sends the texts that it has.
class Client : public LoadObserver {
 public:
  explicit Client(std::vector<std::string> texts) {
    for (const std::string& text : texts) contents_[DigestOf(text)] = exec::MakeContent(text);
  }
  absl::StatusOr<HeaderContents> FetchHeaders(const std::vector<Digest>& digests) override {
    asked = digests;
    return contents_;
  }

  std::vector<Digest> asked;

 private:
  HeaderContents contents_;
};

class FetchedHeadersTest : public ::testing::Test {
 protected:
  absl::StatusOr<HeaderContents> Fetch(UserId user, Client& client, const std::vector<std::string>& texts) {
    std::vector<Digest> digests;
    for (const std::string& text : texts) digests.push_back(DigestOf(text));
    return cache_.FindOrFetch(user, digests, client);
  }

  HeaderCache cache_{1 << 20};
};

TEST_F(FetchedHeadersTest, AUserSendsAHeaderOnce) {
  Client first({"a"});
  ASSERT_THAT(Fetch(kUser, first, {"a"}), IsOk());
  Client second({"b"});
  const absl::StatusOr<HeaderContents> both = Fetch(kUser, second, {"a", "b"});
  ASSERT_THAT(both, IsOk());
  EXPECT_THAT(second.asked, ElementsAre(DigestOf("b")));
  EXPECT_EQ(*both->at(DigestOf("a")), "a");
  EXPECT_EQ(*both->at(DigestOf("b")), "b");
  Client third({});
  EXPECT_THAT(Fetch(kUser, third, {"a", "b"}), IsOk());
  EXPECT_THAT(third.asked, IsEmpty());
}

TEST_F(FetchedHeadersTest, WhatAnotherHasSentIsAskedFor) {
  Client first({"a"});
  ASSERT_THAT(Fetch(kUser, first, {"a"}), IsOk());
  Client other({});
  EXPECT_THAT(Fetch(kOther, other, {"a"}).value(), IsEmpty());
  EXPECT_THAT(other.asked, ElementsAre(DigestOf("a")));
}

}  // namespace
}  // namespace kernix::build
