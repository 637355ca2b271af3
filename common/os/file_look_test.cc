// SPDX-License-Identifier: Apache-2.0
#include "common/os/file_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/os/fault_env.h"
#include "common/os/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

class FileLookTest : public testing::Test {
 protected:
  FileLook::Files Recorded(const std::vector<std::string>& paths) {
    std::vector<WatchedFile> files;
    for (const std::string& path : paths) files.push_back(StateOf(env_, path));
    return std::make_shared<const std::vector<WatchedFile>>(std::move(files));
  }

  void Write(const std::string& path, const std::string& text) {
    memory_.AdvanceClock(Duration(1'000));
    ASSERT_THAT(env_.WriteFile(path, text, 0644), IsOk());
  }

  MemEnv memory_;
  FaultEnv env_{memory_};
};

TEST_F(FileLookTest, SeesWhatHasChanged) {
  Write("/a", "1");
  Write("/b", "1");
  const auto files = Recorded({"/a", "/b", "/nowhere"});
  EXPECT_TRUE(FileLook(env_).Unchanged(files));
  Write("/b", "2");
  EXPECT_FALSE(FileLook(env_).Unchanged(files));
  const auto again = Recorded({"/a", "/b", "/nowhere"});
  EXPECT_TRUE(FileLook(env_).Unchanged(again));
  Write("/nowhere", "");
  EXPECT_FALSE(FileLook(env_).Unchanged(again));
}

TEST_F(FileLookTest, LooksAtEachFileOnce) {
  Write("/a", "1");
  Write("/b", "1");
  const auto one = Recorded({"/a", "/b"}), other = Recorded({"/b", "/a"});
  const int before = env_.Calls(Operation::kStat);
  FileLook look(env_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(look.Unchanged(one));
    EXPECT_TRUE(look.Unchanged(other));
  }
  EXPECT_EQ(env_.Calls(Operation::kStat), before + 2);
  FileLook next(env_);
  EXPECT_TRUE(next.Unchanged(one));
  EXPECT_EQ(env_.Calls(Operation::kStat), before + 4) << "another round looks again";
}

}  // namespace
}  // namespace kernix
