// SPDX-License-Identifier: Apache-2.0
#include "common/flags/link_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/mem_env.h"

namespace kernix::flags {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class LinkFileTest : public ::testing::Test {
 protected:
  LinkFile Look(const std::string& content) {
    EXPECT_TRUE(env_.WriteFile("/lib.so", content, 0600).ok());
    return LookAtLinkFile(env_, "/lib.so");
  }

  MemEnv env_;
};

TEST_F(LinkFileTest, ALinkerScriptNamesFiles) {
  ASSERT_TRUE(env_.WriteFile("/a.o", "", 0600).ok());
  ASSERT_TRUE(env_.WriteFile("/b.a", "", 0600).ok());
  EXPECT_THAT(Look("/* GNU ld script */\nGROUP(/a.o AS_NEEDED (\"/b.a\") /gone.o -lm)\n").other_files,
              UnorderedElementsAre("/a.o", "/b.a"));
}

TEST_F(LinkFileTest, LinksAndScriptsInScriptsAreFollowed) {
  ASSERT_TRUE(env_.WriteFile("/real.so", "INPUT(/second.so)", 0600).ok());
  ASSERT_TRUE(env_.WriteFile("/second.so", "GROUP(/a.o /real.so)", 0600).ok());
  ASSERT_TRUE(env_.WriteFile("/a.o", "", 0600).ok());
  ASSERT_TRUE(env_.CreateSymlink("/real.so", "/link.so").ok());
  EXPECT_THAT(LookAtLinkFile(env_, "/link.so").other_files, UnorderedElementsAre("/second.so", "/a.o", "/real.so"));
}

TEST_F(LinkFileTest, OtherFilesNameNone) {
  ASSERT_TRUE(env_.WriteFile("/a.o", "", 0600).ok());
  EXPECT_THAT(Look(std::string("\x7f"
                               "ELF\0 /a.o ",
                               10))
                  .other_files,
              IsEmpty());
  EXPECT_THAT(Look("!<arch>\n /a.o ").other_files, IsEmpty());
  EXPECT_THAT(LookAtLinkFile(env_, "/gone").other_files, IsEmpty());
}

TEST_F(LinkFileTest, AThinArchiveIsTold) {
  EXPECT_TRUE(Look("!<thin>\n//").is_thin_archive);
  EXPECT_FALSE(Look("!<arch>\n//").is_thin_archive);
}

}  // namespace
}  // namespace kernix::flags
