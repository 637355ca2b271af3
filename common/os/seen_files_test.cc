// SPDX-License-Identifier: Apache-2.0
#include "common/os/seen_files.h"

#include <gtest/gtest.h>

#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

constexpr Duration kLong{10'000};

class SeenFilesTest : public testing::Test {
 protected:
  SeenFilesTest() {
    EXPECT_THAT(env_.CreateDirectories("/k", 0755), IsOk());
    Write("/k/f.cu", "1");
    env_.AdvanceClock(kLong);
  }

  void Write(const std::string& path, const std::string& text) {
    EXPECT_THAT(env_.WriteFile(path, text, 0644), IsOk());
  }

  MemEnv env_;
  SeenFiles files_{env_};
};

TEST_F(SeenFilesTest, AnEditIsAChangeOnce) {
  EXPECT_TRUE(files_.Changed({"/k/f.cu"}));
  files_.NoteLoad({"/k/f.cu"});
  EXPECT_FALSE(files_.Changed({"/k/f.cu"}));
  Write("/k/f.cu", "22");
  EXPECT_TRUE(files_.Changed({"/k/f.cu"}));
  files_.NoteLoad({"/k/f.cu"});
  EXPECT_FALSE(files_.Changed({"/k/f.cu"}));
}

TEST_F(SeenFilesTest, AFileThatGoesOrComesIsAChange) {
  const std::vector<std::string> paths = {"/k/f.cu", "/k/missing.h"};
  files_.Changed(paths);
  files_.NoteLoad(paths);
  EXPECT_FALSE(files_.Changed(paths));
  Write("/k/missing.h", "");
  EXPECT_TRUE(files_.Changed(paths));
  files_.NoteLoad(paths);
  ASSERT_THAT(env_.RemoveFile("/k/f.cu"), IsOk());
  EXPECT_TRUE(files_.Changed(paths));
  EXPECT_TRUE(files_.Changed({"/k/missing.h"})) << "another list";
}

TEST_F(SeenFilesTest, AnEditDuringALoadIsAChange) {
  files_.Changed({"/k/f.cu"});
  Write("/k/f.cu", "22");
  files_.NoteLoad({"/k/f.cu"});
  EXPECT_TRUE(files_.Changed({"/k/f.cu"}));
}

TEST_F(SeenFilesTest, AFileThatTheLoadHasFoundCountsAsSeenIfItIsOldEnough) {
  Write("/k/old.h", "");
  env_.AdvanceClock(kLong);
  files_.Changed({"/k/f.cu"});
  files_.NoteLoad({"/k/f.cu", "/k/old.h"});
  EXPECT_FALSE(files_.Changed({"/k/f.cu", "/k/old.h"}));

  files_.Changed({"/k/f.cu", "/k/old.h"});
  Write("/k/new.h", "");
  files_.NoteLoad({"/k/f.cu", "/k/old.h", "/k/new.h"});
  EXPECT_TRUE(files_.Changed({"/k/f.cu", "/k/old.h", "/k/new.h"})) << "the load may have read an earlier text";
  files_.NoteLoad({"/k/f.cu", "/k/old.h", "/k/new.h"});
  EXPECT_FALSE(files_.Changed({"/k/f.cu", "/k/old.h", "/k/new.h"}));
}

}  // namespace
}  // namespace kernix
