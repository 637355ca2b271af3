// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/own_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/base/error.h"
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
    for (const std::string& text : texts) Send(DigestOf(text), text);
  }
  void Send(const Digest& digest, const std::string& text) { contents_[digest] = exec::MakeContent(text); }

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

TEST_F(OwnHeadersTest, WhatAnotherHasSentIsAskedFor) {
  Client first({"a"});
  ASSERT_THAT(Fetch(kUser, first, {"a"}), IsOk());
  Client other({});
  EXPECT_EQ(KindOf(Fetch(kOther, other, {"a"}).status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(other.asked, ElementsAre(DigestOf("a")));
}

TEST_F(OwnHeadersTest, ContentThatIsNotWhatItsDigestSaysIsRefusedAndForgotten) {
  Client liar({});
  liar.Send(DigestOf("a"), "another");
  EXPECT_EQ(KindOf(Fetch(kUser, liar, {"a"}).status()), v1::ErrorDetail::INVALID_REQUEST);
  Client honest({"a"});
  EXPECT_THAT(Fetch(kUser, honest, {"a"}), IsOk());
}

}  // namespace
}  // namespace kernix::build
