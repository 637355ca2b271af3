// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "build/bazel/remote/execution/v2/remote_execution.pb.h"
#include "daemon/remote/remote_executor.h"
#include "tests/support/fault_env.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_util.h"

namespace kernix::remote {
namespace {

using ::testing::HasSubstr;

class ShippedFoldersTest : public ::testing::Test {
 protected:
  std::string Root() const { return folder_.File("tools"); }
  void Link(const std::string& name, const std::string& target) {
    ASSERT_THAT(env_.CreateSymlink(target, folder_.File(name)), IsOk());
  }
  std::shared_ptr<const ShippedFolder> Get() {
    auto folder = folders_.Get(Root());
    EXPECT_THAT(folder, IsOk());
    return folder.ok() ? *folder : nullptr;
  }
  build::bazel::remote::execution::v2::Directory Top(const ShippedFolder& folder) {
    build::bazel::remote::execution::v2::Directory directory;
    EXPECT_TRUE(directory.ParseFromString(folder.messages.at(folder.digest)));
    return directory;
  }

  const testing::TempFolder folder_;
  FaultEnv env_{Env::Posix()};
  ShippedFolders folders_{env_, {Root()}};
};

TEST_F(ShippedFoldersTest, HasFilesFoldersAndLinks) {
  folder_.Write("tools/bin/nvcc", "a program", /*executable=*/true);
  folder_.Write("tools/version", "13");
  Link("tools/lib", "lib64");
  folder_.Write("outside", "elsewhere");
  Link("tools/copied", "../outside");
  Link("tools/dangling", "bin/nothing");
  const auto folder = Get();
  const auto top = Top(*folder);
  ASSERT_EQ(top.files_size(), 2);
  EXPECT_EQ(top.files(0).name(), "copied");
  EXPECT_EQ(top.files(0).digest().hash(), DigestOf("elsewhere").Hex());
  EXPECT_EQ(top.files(1).name(), "version");
  EXPECT_FALSE(top.files(1).is_executable());
  ASSERT_EQ(top.symlinks_size(), 2);
  EXPECT_EQ(top.symlinks(1).target(), "lib64");
  ASSERT_EQ(top.directories_size(), 1);
  EXPECT_EQ(folder->files.at(exec::BlobDigestOf("a program")), Root() + "/bin/nvcc");
  EXPECT_EQ(folder->messages.size(), 2U);
}

TEST_F(ShippedFoldersTest, IsReadOnceUntilSomethingChanges) {
  folder_.Write("tools/bin/nvcc", "a program", /*executable=*/true);
  const auto first = Get();
  const int reads = env_.Calls(Operation::kOpenFile);
  EXPECT_EQ(Get(), first);
  EXPECT_EQ(env_.Calls(Operation::kOpenFile), reads);
  folder_.Write("tools/bin/nvcc", "another program", /*executable=*/true);
  EXPECT_NE(Get()->digest, first->digest);
  const auto second = Get();
  folder_.Write("tools/bin/new", "");
  EXPECT_NE(Get()->digest, second->digest);
}

TEST_F(ShippedFoldersTest, SaysWhatItCannotShip) {
  folder_.Write("elsewhere/file", "");
  folder_.Write("tools/file", "");
  Link("tools/out", "../elsewhere");
  EXPECT_THAT(folders_.Get(Root()).status(), HasError(absl::StatusCode::kFailedPrecondition, HasSubstr("tools/out")));
}

TEST_F(ShippedFoldersTest, ShipsWhatLiesInAFolder) {
  EXPECT_TRUE(folders_.Ships(Root()));
  EXPECT_TRUE(folders_.Ships(Root() + "/bin"));
  EXPECT_FALSE(folders_.Ships(Root() + "2"));
  EXPECT_FALSE(folders_.Ships("/usr/bin"));
}

}  // namespace
}  // namespace kernix::remote
