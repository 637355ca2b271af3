// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/held_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

class HeldOutputsTest : public ::testing::Test {
 protected:
  HeldOutputsPtr Make(uint64_t max_bytes = 0, UserId user = UserId{7}) {
    return std::make_shared<HeldOutputs>(HeldOutputsOptions{.env = Env::Posix(),
                                                            .scratch_directory = scratch_.path(),
                                                            .max_bytes = max_bytes,
                                                            .of_users = quota_,
                                                            .user = user});
  }

  static absl::StatusOr<exec::Content> Hold(const HeldOutputsPtr& outputs, size_t bytes, char byte = 'x') {
    return outputs->Hold(exec::MakeContent(std::string(bytes, byte)));
  }

  const ScratchDirectory scratch_;
  const std::shared_ptr<exec::ByteQuota> quota_ = std::make_shared<exec::ByteQuota>(100 << 20);
};

TEST_F(HeldOutputsTest, AreTheSameBytesAndOutliveTheObject) {
  HeldOutputsPtr outputs = Make();
  const exec::Content small = Hold(outputs, 3, 'a').value();
  const exec::Content large = Hold(outputs, 70 << 20, 'b').value();  // more than a file is made for
  const exec::Content after = Hold(outputs, 5'000, 'c').value();
  outputs.reset();
  EXPECT_EQ(*small, "aaa");
  EXPECT_TRUE(*large == std::string(70 << 20, 'b'));
  EXPECT_EQ(*after, std::string(5'000, 'c'));
}

TEST_F(HeldOutputsTest, CountForTheirUserUntilTheyHaveGone) {
  HeldOutputsPtr outputs = Make();
  exec::Content held = Hold(outputs, 60 << 20).value();
  EXPECT_EQ(KindOf(Hold(Make(), 60 << 20).status()), v1::ErrorDetail::RESOURCE);
  EXPECT_TRUE(Hold(Make(0, UserId{8}), 60 << 20).ok()) << "another user";
  outputs.reset();
  EXPECT_FALSE(Hold(Make(), 60 << 20).ok()) << "the content is still there";
  held.reset();
  EXPECT_TRUE(Hold(Make(), 60 << 20).ok());
}

TEST_F(HeldOutputsTest, OfAPartHaveABoundOfTheirOwnAndGoWithIt) {
  const HeldOutputsPtr outputs = Make(80 << 20);
  const exec::Content own = Hold(outputs, 30 << 20).value();
  {
    const HeldOutputsPtr part = outputs->ForPart();
    EXPECT_TRUE(Hold(part, 60 << 20).ok());
    EXPECT_EQ(KindOf(Hold(part, 30 << 20).status()), v1::ErrorDetail::RESOURCE) << "more than a plan may have";
  }
  EXPECT_TRUE(Hold(outputs, 50 << 20).ok()) << "nothing of the part counts any more";
}

}  // namespace
}  // namespace kernix::build
