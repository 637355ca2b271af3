// SPDX-License-Identifier: Apache-2.0
#include "common/flags/flag_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/flags/flag_table.h"

namespace kernix::flags {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HostWordsTest, TheCompilerGetsWhatXcompilerHolds) {
  EXPECT_THAT(HostWordsAtCompile({"-O3", "-Xcompiler=-fopenmp,-Wall", "--compiler-options", "-g -pthread", "-fmad=true",
                                  "-Xcompiler"}),
              ElementsAre("-fopenmp", "-Wall", "-g", "-pthread"));
}

TEST(HostWordsTest, EachSpellingOfALinkFlagIsTheHostCompilersOwn) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"-L/x", "-lm"},
                                             {"-L", "/x", "-l", "m"},
                                             {"-L=/x", "-l=m"},
                                             {"--L", "/x", "--l", "m"},
                                             {"-library-path", "/x", "-library", "m"},
                                             {"--library-path=/x", "--library=m"},
                                             {"-Xcompiler=-L/x,-lm"},
                                             {"-Xcompiler", "-L/x -lm"}}) {
    EXPECT_THAT(HostWordsAtLink(words), ElementsAre("-L/x", "-lm")) << words.front();
  }
  EXPECT_THAT(HostWordsAtLink({"--l", "l", "--L", "/L"}), ElementsAre("-ll", "-L/L"));  // a value as in the spelling
  EXPECT_THAT(HostWordsAtLink({"-L/a b,/c", "-l:libx.a"}), ElementsAre("-L/a b", "-L/c", "-l:libx.a"));
  EXPECT_THAT(HostWordsAtLink({"-Xlinker=-z,now", "-Wl,-z,now", "-Xlinker", "-z"}),
              ElementsAre("-Wl,-z,now", "-Wl,-z,now", "-Wl,-z"));
}

TEST(HostWordsTest, WhatTheLinkDoesNotTranslateStays) {
  EXPECT_THAT(HostWordsAtLink({"/x/a.o", "-z", "now", "-s", "-cudart=static"}),
              ElementsAre("/x/a.o", "-z", "now", "-s"));
  EXPECT_THAT(HostWordsAtLink({"-lm", "-L"}), ElementsAre("-lm", "-L"));
  EXPECT_THAT(HostWordsAtLink({}), IsEmpty());
}

using ::testing::HasSubstr;

absl::Status Check(const Table& table, const std::vector<std::string>& words) {
  for (const Flag& flag : ReadAll(table, words)) {
    if (absl::Status status = CheckIsOneFlag(table, flag); !status.ok()) return status;
  }
  return absl::OkStatus();
}

TEST(TwoFlagsTest, TheErrorShowsTheTwo) {
  const absl::Status status = Check(kCompiler, {"-Wall", "-DA=8 -DB=9"});
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_EQ(
      status.message(),
      "\"-DA=8 -DB=9\" is two flags in one string: write two, \"-DA=8\" and \"-DB=9\". If it is one value, put it "
      "in parentheses");
  EXPECT_THAT(std::string(Check(kNvcc, {"-Xptxas -v"}).message()),
              HasSubstr("is a flag and its value in one string: write two, \"-Xptxas\" and \"-v\""));
}

TEST(TwoFlagsTest, FoundInEachTool) {
  for (const char* word :
       {"-O3 -march=native", "-O3  --param=x=1", "-I/a -I/b", "-I /a", "-DA -UB", "-DA=8 -O3", "-DT=unsigned int -DB",
        "-std=c++20 -g", "-fopenmp -pthread", "-DA=\"x y\" -DB", "-D A=8", "-unknown -other", "-DA=(1) -fopenmp",
        "-isystem /a", "-DA=8\t-DB=9", "-O3 \t-g", "-I\t/a"}) {
    EXPECT_FALSE(Check(kCompiler, {word}).ok()) << word;
  }
  for (const char* word : {"-O3 --use_fast_math", "-Xptxas -v", "--ptxas-options -v", "-Xcompiler -fopenmp",
                           "-lineinfo -G", "-DA=8 -DB=9", "-DA=8 --use_fast_math", "-std c++20", "-maxrregcount 64",
                           "-I/a -I/b", "-L/a -lb", "-ccbin gcc-12", "-arch sm_90"}) {
    EXPECT_FALSE(Check(kNvcc, {word}).ok()) << word;
  }
  for (const char* word : {"-L/a -lb", "-lm -lz", "-L /a", "-Wl,--gc-sections -lm", "/a/b.o -lm"}) {
    EXPECT_FALSE(Check(kCompilerAtLink, {word}).ok()) << word;
  }
  EXPECT_FALSE(Check(kCompiler, {"-D", "A=8 -DB=9"}).ok());
  EXPECT_FALSE(Check(kNvcc, {"-D", "A=8\t-DB=9"}).ok());
}

TEST(TwoFlagsTest, BlanksOfAValueAreMeant) {
  for (const char* word : {"-DX=\"a b\"", "-DX=\"a -DB=9\"", "-DMSG=\\\"a -b\\\"", "-DT=unsigned int", "-DX=a - b",
                           "-DX=a -b", "-DX=(a -O3)", "-DX='-' -'a'", "-DF(a, b)=a + b", "-I/my headers",
                           "-I/a - b/include", "-DX=8 ", "-DX=8\t", "-DX= 8", "-DX=it's -O3"}) {
    EXPECT_TRUE(Check(kCompiler, {word}).ok()) << word;
    EXPECT_TRUE(Check(kNvcc, {word}).ok()) << word;
  }
  EXPECT_TRUE(
      Check(kNvcc, {"-Xcompiler", "-Wall -Wextra", "-Xptxas=-v -O3", "-Xcudafe", "--diag_suppress=1 --x"}).ok());
  EXPECT_TRUE(Check(kCompiler, {"-D", "X=n -len", "-I", "/my headers"}).ok());
  EXPECT_TRUE(Check(kCompilerAtLink, {"-L/my libraries", "/my libraries/a.o", "-lm"}).ok());
}

}  // namespace

}  // namespace kernix::flags
