// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/include_roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "common/base/strings.h"
#include "daemon/exec/action_digest.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

RootTree Root(const std::string& text, const std::string& path = "a.h") {
  exec::MerkleTree tree;
  tree.AddFile(path, exec::BlobDigestOf(text));
  return {{{path, exec::BlobDigestOf(text)}}, tree.Digest()};
}

class HeaderTreesTest : public ::testing::Test {
 protected:
  std::string Stage(const exec::InputTreePtr& tree) {
    const absl::StatusOr<std::string> folder = tree->Stage(Env::Posix(), scratch_.path());
    EXPECT_THAT(folder, IsOk());
    return folder.value_or("");
  }
  exec::InputTreePtr Tree(const std::string& text, const std::string& path = "a.h") {
    const RootTree root = Root(text, path);
    return TreesOf({&root}, {{DigestOf(text), exec::MakeContent(text)}}, trees_).front();
  }
  std::vector<std::string> Left() { return Env::Posix().ListDirectory(scratch_.path()).value(); }

  ScratchDirectory scratch_;
  exec::KeptTrees trees_{20'000};  // fits four small files
};

TEST_F(HeaderTreesTest, WhatDidNotChangeIsWrittenOnce) {
  const std::string folder = Stage(Tree("x"));
  EXPECT_EQ(Stage(Tree("x")), folder);
  EXPECT_NE(Stage(Tree("y")), folder);
  EXPECT_NE(Stage(Tree("x", "b.h")), folder);
  EXPECT_EQ(Stage(Tree("x")), folder);
}

TEST_F(HeaderTreesTest, WhatWasUsedLeastLatelyGoes) {
  const std::string first = Stage(Tree("0"));
  for (int i = 1; i < 4; ++i) Stage(Tree(StrCat(i)));
  EXPECT_EQ(Stage(Tree("0")), first);
  const exec::InputTreePtr used = Tree("1");
  for (int i = 4; i < 8; ++i) Stage(Tree(StrCat(i)));
  EXPECT_THAT(Left(), SizeIs(5));  // four, and the one in use
  EXPECT_TRUE(used->Intact());
}

TEST_F(HeaderTreesTest, OneThatIsTooLargeLivesAsLongAsItsBuild) {
  exec::InputTreePtr tree = Tree(std::string(30'000, ' '));
  Stage(tree);
  EXPECT_THAT(Left(), SizeIs(1));
  tree.reset();
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(HeaderTreesTest, FoldersTakeRoomToo) {
  exec::InputTreePtr tree = Tree("x", "a/b/c/d/x.h");
  Stage(tree);
  tree.reset();
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(HeaderTreesTest, OneThatSomebodyChangedIsMadeAgain) {
  const std::string folder = Stage(Tree("x"));
  ASSERT_THAT(Env::Posix().WriteFile(folder + "/a.h", "y", 0644), IsOk());
  const std::string again = Stage(Tree("x"));
  EXPECT_EQ(Env::Posix().ReadFile(again + "/a.h").value(), "x");
  EXPECT_THAT(Left(), SizeIs(1));
}

TEST_F(HeaderTreesTest, OneThatNoBuildHasWrittenDoesNotKeepItsContentsInMemory) {
  const exec::InputTreePtr staged = Tree("x");
  Stage(staged);
  std::weak_ptr<exec::InputTree> waiting = Tree("y");
  EXPECT_FALSE(waiting.expired());
  trees_.DropUnstaged({{"inc/0", {}, staged}, {"inc/1", {}, waiting.lock()}});
  EXPECT_TRUE(waiting.expired());
  EXPECT_EQ(Tree("x"), staged);
}

TEST_F(HeaderTreesTest, NoTwoRootsOfABuildAreOneFolder) {
  const std::vector<RootTree> roots = {Root("x"), {}, Root("y"), Root("x"), Root("x")};
  const HeaderContents contents = {{DigestOf("x"), exec::MakeContent("x")}, {DigestOf("y"), exec::MakeContent("y")}};
  std::vector<const RootTree*> pointers;
  for (const RootTree& root : roots) pointers.push_back(&root);
  const std::vector<exec::InputTreePtr> trees = TreesOf(pointers, contents, trees_);
  ASSERT_THAT(trees, SizeIs(4));  // the empty root has no tree
  EXPECT_NE(trees[0], trees[2]);
  EXPECT_NE(trees[2], trees[3]);
  EXPECT_NE(trees[0], trees[3]);
  EXPECT_EQ(TreesOf(pointers, contents, trees_), trees);
}

// Both builds make the tree; the later one must not replace the earlier one.
TEST_F(HeaderTreesTest, BuildsThatBeginAtOnceShareANewTree) {
  RootTree root = Root("x");
  root.files.resize(2'000, root.files.front());
  const HeaderContents contents = {{DigestOf("x"), exec::MakeContent("x")}};
  for (int round = 0; round < 20; ++round) {
    exec::KeptTrees trees(1 << 30);
    std::vector<std::future<exec::InputTreePtr>> builds;
    for (int i = 0; i < 4; ++i) {
      builds.push_back(std::async(std::launch::async, [&] { return TreesOf({&root}, contents, trees).front(); }));
    }
    const exec::InputTreePtr first = builds.front().get();
    for (size_t i = 1; i < builds.size(); ++i) EXPECT_EQ(builds[i].get(), first);
  }
}

}  // namespace

}  // namespace kernix::build
