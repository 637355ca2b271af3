// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/include_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix::build {
namespace {

using ::testing::ElementsAre;

TEST(IncludeTraceTest, TellsFilesFromMessagesHoweverTheyComeInPieces) {
  const std::string output =
      ". /usr/include/a.h\n.. inc/0/with space.h\nk.cc:1:1: error: no ...\n                 from k.cc:1:\n"
      ". /usr/include/a.h\n... the end\nMultiple include guards may be useful for:\ninc/0/with space.h\nlast";
  for (size_t piece = 1; piece <= output.size(); piece *= 3) {
    IncludeTrace trace;
    for (size_t at = 0; at < output.size(); at += piece) trace.OnOutput(output.substr(at, piece));
    EXPECT_EQ(trace.Messages(), "k.cc:1:1: error: no ...\n                 from k.cc:1:\nlast\n");
    EXPECT_THAT(trace.files(), ElementsAre("/usr/include/a.h", "inc/0/with space.h", "the end"));
    EXPECT_TRUE(trace.complete());
  }
}

TEST(IncludeTraceTest, NoMarkInASourceHidesAFile) {
  IncludeTrace trace;
  trace.OnOutput(" /secret\n! inc/0/a.h.gch\n");
  EXPECT_EQ(trace.Messages(), "");
  EXPECT_THAT(trace.files(), ElementsAre("/secret", "inc/0/a.h.gch"));
}

// After a fatal error, Clang continues to open files but no longer reports which are missing.
TEST(IncludeTraceTest, WhatComesAfterAFatalErrorDoesNotCount) {
  IncludeTrace trace;
  trace.OnOutput(". a.h\nk.cc:1:10: fatal error: 'b.h' file not found\n. /secret\nk.cc:3:1: error: x\n");
  EXPECT_EQ(trace.Messages(), "k.cc:1:10: fatal error: 'b.h' file not found\n");
  EXPECT_THAT(trace.files(), ElementsAre("a.h"));
}

TEST(IncludeTraceTest, WhatCannotBeKeptIsTold) {
  IncludeTrace trace;
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) trace.OnOutput(piece);
  EXPECT_FALSE(trace.complete());
}

}  // namespace
}  // namespace kernix::build
