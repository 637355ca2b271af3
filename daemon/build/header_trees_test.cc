// SPDX-License-Identifier: Apache-2.0
#include "daemon/build/header_trees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/base/strings.h"
#include "daemon/base/test_util.h"

namespace kernix::build {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<TreeFile> Files(const std::string& text, const std::string& path = "a.h") {
  return {{{path, std::make_shared<const std::string>(text)}, DigestOf(text)}};
}

class HeaderTreesTest : public ::testing::Test {
 protected:
  std::string Stage(const exec::InputTreePtr& tree) {
    const absl::StatusOr<std::string> folder = tree->Stage(Env::Posix(), scratch_.path());
    EXPECT_THAT(folder, IsOk());
    return folder.value_or("");
  }
  std::vector<std::string> Left() { return Env::Posix().ListDirectory(scratch_.path()).value(); }

  ScratchDirectory scratch_;
  HeaderTrees trees_{20'000};  // four small files
};

TEST_F(HeaderTreesTest, WhatDidNotChangeIsWrittenOnce) {
  const std::string folder = Stage(trees_.Get(Files("x")));
  EXPECT_EQ(Stage(trees_.Get(Files("x"))), folder);
  EXPECT_NE(Stage(trees_.Get(Files("y"))), folder);
  EXPECT_NE(Stage(trees_.Get(Files("x", "b.h"))), folder);
  EXPECT_EQ(Stage(trees_.Get(Files("x"))), folder);
}

TEST_F(HeaderTreesTest, WhatWasUsedLeastLatelyGoes) {
  const std::string first = Stage(trees_.Get(Files("0")));
  for (int i = 1; i < 4; ++i) Stage(trees_.Get(Files(StrCat(i))));
  EXPECT_EQ(Stage(trees_.Get(Files("0"))), first);
  const exec::InputTreePtr used = trees_.Get(Files("1"));
  for (int i = 4; i < 8; ++i) Stage(trees_.Get(Files(StrCat(i))));
  EXPECT_THAT(Left(), SizeIs(5));  // four, and the one in use
  EXPECT_TRUE(used->Intact());
}

TEST_F(HeaderTreesTest, OneThatIsTooLargeLivesAsLongAsItsBuild) {
  exec::InputTreePtr tree = trees_.Get(Files(std::string(30'000, ' ')));
  Stage(tree);
  EXPECT_THAT(Left(), SizeIs(1));
  tree.reset();
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(HeaderTreesTest, OneThatSomebodyChangedIsMadeAgain) {
  const std::string folder = Stage(trees_.Get(Files("x")));
  ASSERT_THAT(Env::Posix().WriteFile(folder + "/a.h", "y", 0644), IsOk());
  const std::string again = Stage(trees_.Get(Files("x")));
  EXPECT_EQ(Env::Posix().ReadFile(again + "/a.h").value(), "x");
  EXPECT_THAT(Left(), SizeIs(1));
}

TEST_F(HeaderTreesTest, OneThatNoBuildHasWrittenDoesNotKeepItsContentsInMemory) {
  std::weak_ptr<exec::InputTree> waiting = trees_.Get(Files("x"));
  trees_.Get(Files("y"));
  EXPECT_TRUE(waiting.expired());
}

}  // namespace
}  // namespace kernix::build
