// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/header_trees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "common/base/strings.h"
#include "tests/support/test_util.h"

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
  exec::InputTreePtr Tree(const std::vector<TreeFile>& files) { return trees_.Get({files}).front(); }
  std::vector<std::string> Left() { return Env::Posix().ListDirectory(scratch_.path()).value(); }

  ScratchDirectory scratch_;
  HeaderTrees trees_{20'000};  // four small files
};

TEST_F(HeaderTreesTest, WhatDidNotChangeIsWrittenOnce) {
  const std::string folder = Stage(Tree(Files("x")));
  EXPECT_EQ(Stage(Tree(Files("x"))), folder);
  EXPECT_NE(Stage(Tree(Files("y"))), folder);
  EXPECT_NE(Stage(Tree(Files("x", "b.h"))), folder);
  EXPECT_EQ(Stage(Tree(Files("x"))), folder);
}

TEST_F(HeaderTreesTest, WhatWasUsedLeastLatelyGoes) {
  const std::string first = Stage(Tree(Files("0")));
  for (int i = 1; i < 4; ++i) Stage(Tree(Files(StrCat(i))));
  EXPECT_EQ(Stage(Tree(Files("0"))), first);
  const exec::InputTreePtr used = Tree(Files("1"));
  for (int i = 4; i < 8; ++i) Stage(Tree(Files(StrCat(i))));
  EXPECT_THAT(Left(), SizeIs(5));  // four, and the one in use
  EXPECT_TRUE(used->Intact());
}

TEST_F(HeaderTreesTest, OneThatIsTooLargeLivesAsLongAsItsBuild) {
  exec::InputTreePtr tree = Tree(Files(std::string(30'000, ' ')));
  Stage(tree);
  EXPECT_THAT(Left(), SizeIs(1));
  tree.reset();
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(HeaderTreesTest, OneThatSomebodyChangedIsMadeAgain) {
  const std::string folder = Stage(Tree(Files("x")));
  ASSERT_THAT(Env::Posix().WriteFile(folder + "/a.h", "y", 0644), IsOk());
  const std::string again = Stage(Tree(Files("x")));
  EXPECT_EQ(Env::Posix().ReadFile(again + "/a.h").value(), "x");
  EXPECT_THAT(Left(), SizeIs(1));
}

TEST_F(HeaderTreesTest, OneThatNoBuildHasWrittenDoesNotKeepItsContentsInMemory) {
  const exec::InputTreePtr staged = Tree(Files("x"));
  Stage(staged);
  std::weak_ptr<exec::InputTree> waiting = Tree(Files("y"));
  EXPECT_FALSE(waiting.expired());
  trees_.DropUnstaged({{"inc/0", staged}, {"inc/1", waiting.lock()}});
  EXPECT_TRUE(waiting.expired());
  EXPECT_EQ(Tree(Files("x")), staged);
}

TEST_F(HeaderTreesTest, NoTwoRootsOfABuildAreOneFolder) {
  const std::vector<std::vector<TreeFile>> roots = {Files("x"), {}, Files("y"), Files("x"), Files("x")};
  const std::vector<exec::InputTreePtr> trees = trees_.Get(roots);
  ASSERT_THAT(trees, SizeIs(5));
  EXPECT_EQ(trees[1], nullptr);
  EXPECT_NE(trees[0], trees[3]);
  EXPECT_NE(trees[3], trees[4]);
  EXPECT_NE(trees[0], trees[4]);
  EXPECT_EQ(trees_.Get(roots), trees);
}

// Both make it; the later one must not take the place of the earlier one.
TEST_F(HeaderTreesTest, BuildsThatBeginAtOnceShareANewTree) {
  const std::vector<TreeFile> files(2'000, Files("x").front());
  for (int round = 0; round < 20; ++round) {
    HeaderTrees trees(1 << 30);
    std::vector<std::future<exec::InputTreePtr>> builds;
    for (int i = 0; i < 4; ++i) {
      builds.push_back(std::async(std::launch::async, [&] { return trees.Get({files}).front(); }));
    }
    const exec::InputTreePtr first = builds.front().get();
    for (size_t i = 1; i < builds.size(); ++i) EXPECT_EQ(builds[i].get(), first);
  }
}

}  // namespace
}  // namespace kernix::build
