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

constexpr UserId kUser{1000};
constexpr UserId kOther{1001};

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

class OwnHeadersTest : public ::testing::Test {
 protected:
  absl::StatusOr<HeaderContents> Fetch(UserId user, Client& client, const std::vector<std::string>& texts) {
    std::vector<Digest> digests;
    for (const std::string& text : texts) digests.push_back(DigestOf(text));
    return OwnHeaders(cache_, user, client).FetchHeaders(digests);
  }

  HeaderCache cache_{1 << 20};
};

TEST_F(OwnHeadersTest, AUserSendsAHeaderOnce) {
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

TEST_F(OwnHeadersTest, WhatIsTooLargeIsSentAgain) {
  const std::string large(2 << 20, 'x');
  for (int i = 0; i < 2; ++i) {
    Client client({large});
    ASSERT_THAT(Fetch(kUser, client, {large}), IsOk());
    EXPECT_THAT(client.asked, ElementsAre(DigestOf(large)));
  }
}

TEST_F(OwnHeadersTest, WhatAnotherHasSentIsAskedFor) {
  Client first({"a"});
  ASSERT_THAT(Fetch(kUser, first, {"a"}), IsOk());
  Client other({});
  EXPECT_THAT(Fetch(kOther, other, {"a"}).value(), IsEmpty());
  EXPECT_THAT(other.asked, ElementsAre(DigestOf("a")));
}

}  // namespace
}  // namespace kernix::build
