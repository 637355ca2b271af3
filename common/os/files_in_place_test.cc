// SPDX-License-Identifier: Apache-2.0
#include "common/os/files_in_place.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test_util.h"

namespace kernix {
namespace {

class FilesInPlaceTest : public testing::Test {
 protected:
  FilesInPlaceTest() {
    EXPECT_THAT(env_.CreateDirectories(folder_), IsOk());
    EXPECT_THAT(env_.WriteFile(file_, "text", 0600), IsOk());
    EXPECT_EQ(symlink(folder_.c_str(), link_.c_str()), 0);
  }

  // What is lost of the file, the folder and the file behind the link once `happens` has.
  template <typename Happens>
  std::string LostAfter(const Happens& happens) {
    FilesInPlace files(env_);
    for (const std::string& path : {file_, folder_, link_ + "/file", folder_ + "/was-never-there"}) files.Add(path);
    EXPECT_EQ(files.Names().size(), 3u);
    EXPECT_EQ(files.FirstLost(), "");
    happens();
    return files.FirstLost();
  }

  Env& env_ = Env::Posix();
  ScratchDirectory scratch_;
  const std::string folder_ = scratch_ / "folder";
  const std::string file_ = folder_ + "/file";
  const std::string link_ = scratch_ / "link";
};

TEST_F(FilesInPlaceTest, WhatIsWrittenOrGetsAnotherModeIsInPlace) {
  EXPECT_EQ(LostAfter([&] {
              EXPECT_THAT(env_.WriteFile(file_, "another text", 0644), IsOk());
              EXPECT_EQ(chmod(folder_.c_str(), 0700), 0);
              EXPECT_THAT(env_.WriteFile(folder_ + "/was-never-there", "", 0600), IsOk());
            }),
            "");
}

TEST_F(FilesInPlaceTest, AFileThatIsRemovedIsLost) {
  EXPECT_EQ(LostAfter([&] { EXPECT_THAT(env_.RemoveFile(file_), IsOk()); }), file_);
}

TEST_F(FilesInPlaceTest, AFileThatIsMadeAnewIsLost) {
  EXPECT_EQ(LostAfter([&] {
              EXPECT_THAT(env_.WriteFile(file_ + "2", "text", 0600), IsOk());
              EXPECT_THAT(env_.Rename(file_ + "2", file_), IsOk());
            }),
            file_);
}

TEST_F(FilesInPlaceTest, AFolderThatIsMovedAwayIsLost) {
  EXPECT_EQ(LostAfter([&] { EXPECT_THAT(env_.Rename(folder_, scratch_ / "elsewhere"), IsOk()); }), folder_);
}

TEST_F(FilesInPlaceTest, AFileBehindALinkIsLostWithTheLink) {
  EXPECT_EQ(LostAfter([&] { EXPECT_THAT(env_.RemoveFile(link_), IsOk()); }), link_ + "/file");
}

}  // namespace
}  // namespace kernix
