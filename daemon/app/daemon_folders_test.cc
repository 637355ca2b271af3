// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/daemon_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/base/paths.h"
#include "common/os/env.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using ::testing::UnorderedElementsAre;

class RunFoldersTest : public ::testing::Test {
 protected:
  void MakeFolder(const std::string& name, const std::vector<std::string>& files, bool old) {
    const std::string folder = root_ / name;
    ASSERT_THAT(env_.CreateDirectories(folder), IsOk());
    std::vector<std::string> paths;
    for (const std::string& file : files) paths.push_back(JoinPath(folder, file));
    for (const std::string& path : paths) ASSERT_THAT(env_.WriteFile(path, "", 0600), IsOk());
    paths.push_back(folder);
    if (!old) return;
    const std::chrono::nanoseconds age = kKeepRunFolder + std::chrono::seconds(60);
    const int64_t then = env_.UnixMillis() * 1'000'000 - age.count();
    for (const std::string& path : paths) ASSERT_THAT(env_.SetModificationTime(path, then), IsOk());
  }

  Env& env_ = Env::Posix();
  ScratchDirectory root_;
};

TEST_F(RunFoldersTest, OnlyOldOnesOfDaemonsGo) {
  MakeFolder("0000000000000000", {"kernixd.lock"}, /*old=*/true);
  MakeFolder("1111111111111111", {"kernixd.lock", "start.lock", "kernixd.log", "kernixd.log.1"}, /*old=*/true);
  MakeFolder("2222222222222222", {"kernixd.lock"}, /*old=*/false);
  MakeFolder("3333333333333333", {"kernixd.lock", "thesis.txt"}, /*old=*/true);
  MakeFolder("4444444444444444/kernixd.data", {}, /*old=*/true);
  ASSERT_THAT(env_.SetModificationTime(root_ / "4444444444444444", 0), IsOk());
  MakeFolder("some-other-name", {"kernixd.lock"}, /*old=*/true);
  RemoveDeadRunFolders(env_, root_ / "0000000000000000");
  EXPECT_THAT(env_.ListDirectory(root_.path()).value(),
              UnorderedElementsAre("0000000000000000", "2222222222222222", "3333333333333333", "4444444444444444",
                                   "some-other-name"));
}

TEST_F(RunFoldersTest, OneThatIsInUseStays) {
  MakeFolder("1111111111111111", {"kernixd.lock", "start.lock"}, /*old=*/true);
  const auto lock = env_.TryLockFile(root_ / "1111111111111111/kernixd.lock");
  ASSERT_THAT(lock, IsOk());
  RemoveDeadRunFolders(env_, root_ / "0000000000000000");
  EXPECT_THAT(env_.ListDirectory(root_.path()).value(), UnorderedElementsAre("1111111111111111"));
}

}  // namespace

}  // namespace kernix::server
