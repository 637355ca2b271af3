// SPDX-License-Identifier: Apache-2.0
#include "common/base/paths.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kernix {
namespace {

TEST(PathTextTest, Join) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "/b"), "a/b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", ""), "a");
}

TEST(PathTextTest, BasenameAndDirname) {
  EXPECT_EQ(Basename("/a/b.cu"), "b.cu");
  EXPECT_EQ(Basename("/a/b/"), "b");
  EXPECT_EQ(Basename("b"), "b");
  EXPECT_EQ(Basename("/"), "/");
  EXPECT_EQ(Dirname("/a/b.cu"), "/a");
  EXPECT_EQ(Dirname("/a//b/"), "/a");
  EXPECT_EQ(Dirname("/a"), "/");
  EXPECT_EQ(Dirname("/"), "/");
  EXPECT_EQ(Dirname("a"), ".");
}

TEST(PathTextTest, Normalize) {
  EXPECT_EQ(NormalizePath("/a//b/./c/../d/"), "/a/b/d");
  EXPECT_EQ(NormalizePath("/../a"), "/a");
  EXPECT_EQ(NormalizePath("/"), "/");
  EXPECT_EQ(NormalizePath("a/../.."), "..");
  EXPECT_EQ(NormalizePath("../../a"), "../../a");
  EXPECT_EQ(NormalizePath("a/.."), ".");
  EXPECT_EQ(NormalizePath(""), ".");
}

TEST(PathTextTest, IsBelow) {
  EXPECT_TRUE(IsBelow("/a/b", "/a"));
  EXPECT_TRUE(IsBelow("a/b/c", "a"));
  EXPECT_FALSE(IsBelow("/a", "/a"));
  EXPECT_FALSE(IsBelow("/ab", "/a"));
  EXPECT_FALSE(IsBelow("/a", "/a/b"));
  EXPECT_FALSE(IsBelow("/c/a/b", "/a"));
}

TEST(ProcessGetEnvTest, AnEmptyVariableIsAbsent) {
  ASSERT_EQ(setenv("KERNIX_PATHS_TEST", "x", 1), 0);
  EXPECT_EQ(ProcessGetEnv("KERNIX_PATHS_TEST"), "x");
  ASSERT_EQ(setenv("KERNIX_PATHS_TEST", "", 1), 0);
  EXPECT_EQ(ProcessGetEnv("KERNIX_PATHS_TEST"), std::nullopt);
  unsetenv("KERNIX_PATHS_TEST");
  EXPECT_EQ(ProcessGetEnv("KERNIX_PATHS_TEST"), std::nullopt);
}

}  // namespace
}  // namespace kernix
