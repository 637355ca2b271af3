// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/dependency_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DependencyFileTest, LineMarkersNameFiles) {
  EXPECT_THAT(
      FilesOfLineMarkers(
          "# 0 \"unit.cu\"\n# 1 \"/proc/self/cwd//\"\n# 0 \"<built-in>\"\nint x;\n# 1 \"/usr/include/a.h\" 1 3\n"
          "  # 2 \"indented\"\n# 7 \"with \\\"quotes\\\" and \\\\\"\n# 3 \"unit.cu\" 2\n#pragma \"no\"\n"
          "# 1 \"end"),
      testing::ElementsAre("unit.cu", "/usr/include/a.h", "with \"quotes\" and \\", "end"));
}

TEST(DependencyFileTest, WhatIsWrittenIsReadBack) {
  const std::vector<std::string> paths = {"a.cu", "/odd folder/#1$x\\y.h", "c:d"};
  EXPECT_EQ(ParseDependencyFile(MakeDependencyFile("a.o", paths)), paths);
}

TEST(DependencyFileTest, ReadsWhatGccWrites) {
  EXPECT_THAT(
      ParseDependencyFile("unit.o: unit.cc kernix/brainevent/common.h \\\n /usr/include/math.h \\\n  inc/0/a.h\n"),
      ElementsAre("unit.cc", "kernix/brainevent/common.h", "/usr/include/math.h", "inc/0/a.h"));
}

TEST(DependencyFileTest, ReadsWhatNvccWrites) {
  EXPECT_THAT(ParseDependencyFile("unit.o : unit.cu \\\n    /opt/cuda/bin/../include/cuda.h\n"),
              ElementsAre("unit.cu", "/opt/cuda/bin/../include/cuda.h"));
}

TEST(DependencyFileTest, Unescapes) {
  EXPECT_THAT(ParseDependencyFile("a: with\\ space.h hash\\#.h dollar$$.h back\\\\slash.h plain\\x.h\n"),
              ElementsAre("with space.h", "hash#.h", "dollar$.h", "back\\slash.h", "plain\\x.h"));
}

TEST(DependencyFileTest, TakesTheFirstRuleOnly) {
  EXPECT_THAT(ParseDependencyFile("a b: one.h\n\none.h:\ntwo.h:\n"), ElementsAre("one.h"));
}

TEST(DependencyFileTest, DropsDoubles) { EXPECT_THAT(ParseDependencyFile("a: x y x\n"), ElementsAre("x", "y")); }

TEST(DependencyFileTest, ContinuesOverCarriageReturns) {
  EXPECT_THAT(ParseDependencyFile("a: x \\\r\n y\r\n"), ElementsAre("x", "y"));
}

TEST(DependencyFileTest, AnythingElseGivesNothingOrLittleButEnds) {
  for (const char* text : {"", "no rule", ":", "a:", "a: \\", "a:\\\n", "\\", "a: \\\n\\\n\\\n", "a: b\\"}) {
    EXPECT_LE(ParseDependencyFile(text).size(), 1u) << text;
  }
  EXPECT_THAT(ParseDependencyFile("a:\n"), IsEmpty());
}

TEST(DependencyFileTest, FilesOutsideRootHaveAbsolutePaths) {
  EXPECT_THAT(FilesOutsideRoot("u.o: u.cc inc/0/a.h /usr/include/b.h /opt/c/bin/../include/c.h /opt/c/include/c.h\n"),
              ElementsAre("/opt/c/bin/../include/c.h", "/opt/c/include/c.h", "/usr/include/b.h"));
}

// nvcc escapes nothing. In `#line 1 "x\\"`, a source names a file that ends in a backslash.
TEST(DependencyFileTest, NoNameHidesAFileOutsideRoot) {
  EXPECT_THAT(FilesOutsideRoot("u.o: x\\ /etc/passwd inc/0/a\\ b.h\n"), ElementsAre("x /etc/passwd"));
}

TEST(DependencyFileTest, FilesOutsideRootHavePathsThatClimbOut) {
  for (const char* path : {"../x.h", "..", "kernix-unit/../../x.h", "./a/../../x.h", "../kernix-unit/unit.cc"}) {
    EXPECT_THAT(FilesOutsideRoot(StrCat("u.o: ", path, "\n")), ElementsAre(path));
  }
  for (const char* path : {"inc/0/../x.h", "inc/0/a/../../x.h", "inc//0/./../0/x.h", "kernix/../inc/0/x.h",
                           "inc/../toolchain/cuda/../x.h"}) {
    EXPECT_THAT(FilesOutsideRoot(StrCat("u.o: ", path, "\n")), ElementsAre(path)) << "the folder is a link";
  }
  EXPECT_THAT(FilesOutsideRoot("u.o: kernix-unit/../x.h inc/0/a/../x.h kernix/brainevent/../b.h inc/../a..b/..c\n"),
              IsEmpty());
}

}  // namespace
}  // namespace kernix::build
