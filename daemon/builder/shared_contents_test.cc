// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/shared_contents.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kernix::build {
namespace {

HeaderContents Received(const std::string& text) { return {{DigestOf(text), exec::MakeContent(text)}}; }

TEST(SharedContentsTest, EqualContentsAreOneWhileTheyAreHeld) {
  SharedContents contents;
  HeaderContents first = contents.Share(Received("a"));
  const HeaderContents second = contents.Share(Received("a"));
  const HeaderContents other = contents.Share(Received("b"));
  EXPECT_EQ(first.begin()->second, second.begin()->second);
  EXPECT_EQ(*other.begin()->second, "b");
}

TEST(SharedContentsTest, NothingIsHeldForLater) {
  SharedContents contents;
  HeaderContents first = contents.Share(Received("a"));
  const std::weak_ptr<const std::string_view> held = first.begin()->second;
  first.clear();
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(*contents.Share(Received("a")).begin()->second, "a");
}

}  // namespace
}  // namespace kernix::build
