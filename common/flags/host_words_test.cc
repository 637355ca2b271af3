// SPDX-License-Identifier: Apache-2.0
#include "common/flags/host_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace kernix::flags
