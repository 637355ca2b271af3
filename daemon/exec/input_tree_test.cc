// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/input_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "daemon/exec/executor.h"
#include "tests/support/fault_env.h"
#include "tests/support/test_util.h"

namespace kernix::exec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<InputFile> Files() {
  return {MakeInput("a.h", "a"), MakeInput("sub/deep/b.h", "b"), MakeInput("sub/a.h", "a")};
}

// Uses real files, because the tree depends on times and inodes.
class InputTreeTest : public ::testing::Test {
 protected:
  std::vector<std::string> Left() { return env_.ListDirectory(scratch_.path()).value(); }

  std::string Stage(InputTree& tree) {
    const absl::StatusOr<std::string> folder = tree.Stage(env_, scratch_.path());
    EXPECT_THAT(folder, IsOk());
    return folder.value_or("");
  }

  ScratchDirectory scratch_;
  FaultEnv env_{Env::Posix()};
};

TEST_F(InputTreeTest, IsWrittenOnceAndGoesWithItsOwner) {
  auto tree = std::make_unique<InputTree>(Files());
  EXPECT_THAT(Left(), IsEmpty());
  const std::string folder = Stage(*tree);
  EXPECT_THAT(env_.ListDirectory(folder).value(), ElementsAre("a.h", "sub"));
  EXPECT_EQ(env_.ReadFile(folder + "/sub/deep/b.h").value(), "b");
  EXPECT_EQ(env_.Stat(folder + "/a.h")->mtime_ns, env_.Stat(folder + "/sub/deep/b.h")->mtime_ns);
  EXPECT_EQ(Stage(*tree), folder);
  EXPECT_THAT(Left(), ElementsAre(Basename(Dirname(Dirname(folder)))));
  tree.reset();
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(InputTreeTest, NothingIsLeftOfAFailureAndTheNextCallerTriesAgain) {
  InputTree tree(Files());
  env_.Inject(NoSpace(Operation::kWriteFile, "b.h"));
  EXPECT_FALSE(tree.Stage(env_, scratch_.path()).ok());
  EXPECT_THAT(Left(), IsEmpty());
  EXPECT_EQ(env_.ReadFile(Stage(tree) + "/sub/deep/b.h").value(), "b");
}

TEST_F(InputTreeTest, WhatCannotBeRemovedDoesNotFillTheLog) {
  env_.Inject({.operation = Operation::kRemoveTree, .times = 0, .error = absl::InternalError(std::string(4000, 'x'))});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 200; ++i) RemoveScratchFolder(env_, scratch_ / "none");
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr("scratch_not_removed"));
  EXPECT_LT(logged.size(), 300'000u);
}

TEST_F(InputTreeTest, ItsFilesCanBeReadBeforeAndAfterItIsWritten) {
  InputTree tree(Files());
  const auto expect_contents = [&] {
    std::string all;
    for (const InputFile& file : tree.Files()) all += *tree.Load(file).value();
    EXPECT_EQ(all, "aba");
  };
  expect_contents();
  const std::string folder = Stage(tree);
  expect_contents();
  EXPECT_EQ(tree.Files()[0].content, nullptr) << "it takes no memory any more";
  ASSERT_THAT(env_.WriteFile(folder + "/a.h", "c", 0644), IsOk());
  EXPECT_THAT(tree.Load(tree.Files()[0]).status(), HasError(absl::StatusCode::kDataLoss, HasSubstr("a.h")));
}

TEST_F(InputTreeTest, NoticesThatSomebodyChangedIt) {
  using Change = std::function<void(const std::string& folder)>;
  const Change changes[] = {
      [&](const std::string& folder) { EXPECT_THAT(env_.WriteFile(folder + "/a.h", "c", 0644), IsOk()); },
      [&](const std::string& folder) { EXPECT_THAT(env_.SetModificationTime(folder + "/a.h", 1), IsOk()); },
      [&](const std::string& folder) { EXPECT_THAT(env_.RemoveFile(folder + "/sub/deep/b.h"), IsOk()); },
      [&](const std::string& folder) { EXPECT_THAT(env_.WriteFile(folder + "/sub/new.h", "", 0644), IsOk()); },
      [&](const std::string& folder) { EXPECT_THAT(env_.WriteFile(Dirname(folder) + "/new.h", "", 0644), IsOk()); },
      [&](const std::string& folder) { EXPECT_THAT(env_.RemoveTree(folder), IsOk()); },
  };
  for (const Change& change : changes) {
    InputTree tree(Files());
    EXPECT_TRUE(tree.Intact());
    const std::string folder = Stage(tree);
    EXPECT_TRUE(tree.Intact());
    change(folder);
    EXPECT_FALSE(tree.Intact());
  }
}

TEST_F(InputTreeTest, ActionsSeeItAsAFolderOfTheirOwnRoot) {
  Action action;
  action.step = "compile";
  action.argv = {"/bin/sh", "-c", "cat inc/0/a.h inc/0/sub/deep/b.h c.h > out"};
  action.inputs = {MakeInput("c.h", "c")};
  action.outputs = {"out"};
  action.trees = std::make_shared<std::vector<MountedTree>>(
      std::vector<MountedTree>{{"inc/0", BlobDigest(), std::make_shared<InputTree>(Files())}});
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<ActionResult> result = RunAction(env_, {scratch_.path()}, action, nullptr, nullptr);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(*result->outputs.at("out"), "abc");
    EXPECT_EQ(Left().size(), 1u);  // the tree and its contents remain
    EXPECT_TRUE(action.trees->front().tree->Intact());
  }
  action.trees = nullptr;
  EXPECT_THAT(Left(), IsEmpty());
}

// A path that textually stays in the action's root must not lead to the tree's neighbours.
TEST_F(InputTreeTest, ClimbingFromItLeadsToNothing) {
  ScratchDirectory store;
  const std::string scratch = store / "tmp";
  ASSERT_THAT(env_.CreateDirectories(scratch, 0700), IsOk());
  for (const std::string& folder : {scratch, store.path()}) {
    ASSERT_THAT(env_.WriteFile(folder + "/secret", "secret", 0600), IsOk());
  }
  Action action;
  action.step = "compile";
  action.argv = {"/bin/sh", "-c", "cat inc/0/../secret inc/0/../../secret > out 2>&-; ls inc/0/.. inc/0/../.. >> out"};
  action.outputs = {"out"};
  action.trees = std::make_shared<std::vector<MountedTree>>(
      std::vector<MountedTree>{{"inc/0", BlobDigest(), std::make_shared<InputTree>(Files())}});
  const absl::StatusOr<ActionResult> result = RunAction(env_, {scratch}, action, nullptr, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(*result->outputs.at("out"), "inc/0/..:\ntree\n\ninc/0/../..:\ntree\n");
}

TEST_F(InputTreeTest, IsNoDeeperInTheRootThanItLiesInItsOwnFolder) {
  Action action;
  action.step = "compile";
  action.argv = {"/bin/true"};
  action.trees = std::make_shared<std::vector<MountedTree>>(
      std::vector<MountedTree>{{"inc/./0/x", BlobDigest(), std::make_shared<InputTree>(Files())}});
  EXPECT_THAT(ToStd(RunAction(env_, {scratch_.path()}, action, nullptr, nullptr).status().message()),
              HasSubstr("as deep as \"inc/./0/x\""));
}

TEST_F(InputTreeTest, OneThatCannotBeWrittenIsTheMachinesFailure) {
  Action action;
  action.step = "compile";
  action.argv = {"/bin/true"};
  action.trees = std::make_shared<std::vector<MountedTree>>(
      std::vector<MountedTree>{{"inc/0", BlobDigest(), std::make_shared<InputTree>(Files())}});
  env_.Inject(NoSpace(Operation::kWriteFile, "a.h"));
  const absl::StatusOr<ActionResult> result = RunAction(env_, {scratch_.path()}, action, nullptr, nullptr);
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(Left(), IsEmpty());
}

}  // namespace
}  // namespace kernix::exec
