// SPDX-License-Identifier: Apache-2.0
#include "client/load/matching_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/error.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScratchFolder;

class MatchingFilesTest : public ::testing::Test {
 protected:
  MatchingFilesTest() {
    for (const char* path : {"b.cu", "a.cu", "a.cpp", "sub/c.cu", "sub/deep/d.cu", "folder.cu/x.cu"}) {
      folder_.Write(path, "");
    }
  }

  std::vector<std::string> Match(const std::vector<std::string>& patterns) {
    const auto paths = MatchingFiles(folder_.path(), patterns);
    EXPECT_TRUE(paths.ok()) << paths.status();
    std::vector<std::string> names;
    for (const std::string& path : paths.value_or(std::vector<std::string>())) {
      names.push_back(path.substr(folder_.path().size() + 1));
    }
    return names;
  }

  ScratchFolder folder_;
};

TEST_F(MatchingFilesTest, TheFilesOfEachPatternAreSorted) {
  EXPECT_THAT(Match({"*.cu"}), ElementsAre("a.cu", "b.cu"));
  EXPECT_THAT(Match({"*.cpp", "a.*", "*.cu"}), ElementsAre("a.cpp", "a.cu", "b.cu"));
}

TEST_F(MatchingFilesTest, PatternsReachIntoFolders) {
  EXPECT_THAT(Match({"sub/*.cu"}), ElementsAre("sub/c.cu"));
  EXPECT_THAT(Match({"s*/d*/*.cu"}), ElementsAre("sub/deep/d.cu"));
  EXPECT_THAT(Match({"./a.cu", "sub/../b.cu"}), ElementsAre("./a.cu", "sub/../b.cu"));
  ASSERT_EQ(symlink(folder_.path().c_str(), (folder_ / "sub/deep/loop").c_str()), 0);
  EXPECT_THAT(Match({"**/*.cu"}), ElementsAre("a.cu", "b.cu", "folder.cu/x.cu", "sub/c.cu", "sub/deep/d.cu"));
}

// As in shells: other systems' and editors' files are no sources.
TEST_F(MatchingFilesTest, HiddenFilesMustBeNamed) {
  folder_.Write("._a.cu", "");
  folder_.Write(".checkpoints/a.cu", "");
  EXPECT_THAT(Match({"**/*.cu"}), ElementsAre("a.cu", "b.cu", "folder.cu/x.cu", "sub/c.cu", "sub/deep/d.cu"));
  EXPECT_THAT(Match({".*.cu", ".checkpoints/*.cu"}), ElementsAre("._a.cu", ".checkpoints/a.cu"));
}

TEST_F(MatchingFilesTest, WhatMatchesNothingIsNamed) {
  const auto none = MatchingFiles(folder_.path(), {"*.cuh", "**"});
  EXPECT_EQ(KindOf(none.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(none.status().ToString(), HasSubstr("no file in " + folder_.path() + " matches *.cuh, **"));
  const auto missing = MatchingFiles(folder_ / "missing", {"*.cu"});
  EXPECT_EQ(KindOf(missing.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(missing.status().ToString(), HasSubstr("there is no folder " + (folder_ / "missing")));
}

}  // namespace
}  // namespace kernix
