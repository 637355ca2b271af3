// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/held_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "common/base/error.h"
#include "tests/support/fault_env.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

class HeldOutputsTest : public ::testing::Test {
 protected:
  HeldOutputsPtr Make(uint64_t max_bytes = 0, UserId user = UserId{7}) {
    return std::make_shared<HeldOutputs>(Env::Posix(), HeldOutputsOptions{.scratch_directory = scratch_.path(),
                                                                          .max_bytes = max_bytes,
                                                                          .of_users = quota_,
                                                                          .askers = exec::OneAsker(user)});
  }

  static absl::StatusOr<exec::Content> Hold(const HeldOutputsPtr& outputs, size_t bytes, char byte = 'x') {
    return outputs->Hold(exec::MakeContent(std::string(bytes, byte)));
  }

  // Of this process' files without a name.
  static uint64_t BytesOnDisk() {
    const std::vector<std::string> names = Env::Posix().ListDirectory("/proc/self/fd").value();
    uint64_t bytes = 0;
    for (const std::string& name : names) {
      struct stat info = {};
      if (stat(("/proc/self/fd/" + name).c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 0)
        bytes += static_cast<uint64_t>(info.st_blocks) * 512;
    }
    return bytes;
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

TEST_F(HeldOutputsTest, CountForAnAskerWhoHasRoom) {
  const exec::Content of_first = Hold(Make(0, UserId{7}), 90 << 20).value();
  const auto both = std::make_shared<exec::Askers>(exec::Asker{UserId{7}});
  both->Join({UserId{8}});
  HeldOutputs joined(Env::Posix(), {.scratch_directory = scratch_.path(), .of_users = quota_, .askers = both});
  const auto held = joined.Hold(exec::MakeContent(std::string(60 << 20, 'x')));
  EXPECT_TRUE(held.ok()) << "the second one has all of theirs left";
  EXPECT_FALSE(joined.Hold(exec::MakeContent(std::string(60 << 20, 'x'))).ok());
}

TEST_F(HeldOutputsTest, WaitForOtherLoadsButNotForTheirOwn) {
  const HeldOutputsPtr outputs = Make();
  const exec::Content held = Hold(outputs, 60 << 20).value();
  EXPECT_GT(RetryAfter(Hold(Make(), 60 << 20).status()).count(), 0);
  const absl::Status alone = Hold(outputs, 60 << 20).status();
  EXPECT_EQ(KindOf(alone), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(RetryAfter(alone).count(), 0) << "it would never end";
}

TEST_F(HeldOutputsTest, GiveTheDiskBackOneByOne) {
  const HeldOutputsPtr outputs = Make();
  const exec::Content first = Hold(outputs, 1 << 20, 'a').value();
  exec::Content second = Hold(outputs, 8 << 20, 'b').value();
  const exec::Content third = Hold(outputs, 1 << 20, 'c').value();
  const uint64_t before = BytesOnDisk();
  second.reset();
  EXPECT_LE(BytesOnDisk() + (8 << 20), before);
  EXPECT_EQ(*first, std::string(1 << 20, 'a'));
  EXPECT_EQ(*third, std::string(1 << 20, 'c'));
}

TEST_F(HeldOutputsTest, OfAPartHaveABoundOfTheirOwn) {
  const HeldOutputsPtr outputs = Make(40 << 20);
  const exec::Content own = Hold(outputs, 30 << 20).value();
  const HeldOutputsPtr part = outputs->ForPart();
  exec::Content of_part = Hold(part, 30 << 20).value();
  EXPECT_EQ(KindOf(Hold(part, 20 << 20).status()), v1::ErrorDetail::RESOURCE);
  of_part.reset();
  EXPECT_TRUE(Hold(part, 20 << 20).ok());
}

TEST_F(HeldOutputsTest, SayThatTheDiskIsFull) {
  FaultEnv env(Env::Posix());
  env.Inject(NoSpace(Operation::kMakeScratchFile, scratch_.path()));
  HeldOutputs outputs(env,
                      {.scratch_directory = scratch_.path(), .of_users = quota_, .askers = exec::OneAsker(UserId{7})});
  const absl::Status status = outputs.Hold(exec::MakeContent("x")).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot keep the output of a step"));
  EXPECT_TRUE(outputs.Hold(exec::MakeContent("x")).ok()) << "there is room again";
}

}  // namespace
}  // namespace kernix::build
