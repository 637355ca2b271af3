// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/root_path.h"

#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "daemon/exec/action.h"

namespace kernix::exec {
namespace {

constexpr char kRoot[] = "/scratch/action-x7";

TEST(ExpandRootTest, PutsInThePathEverywhere) {
  EXPECT_EQ(ExpandRoot(StrCat("-map=", kRootPlaceholder, "/a=", kRootPlaceholder), kRoot),
            "-map=/scratch/action-x7/a=/scratch/action-x7");
  EXPECT_EQ(ExpandRoot("-O3", kRoot), "-O3");
}

TEST(RemoveRootTest, ShowsWhatLiesInItRelative) {
  EXPECT_EQ(RemoveRoot("/scratch/action-x7/inc/a.h:3: error", kRoot), "inc/a.h:3: error");
  EXPECT_EQ(RemoveRoot("in /scratch/action-x7: -I/scratch/action-x7/inc", kRoot), "in .: -Iinc");
  EXPECT_EQ(RemoveRoot("/scratch/other", kRoot), "/scratch/other");
}

// Text may be cut anywhere, also within the path.
TEST(RootRemoverTest, GivesTheSameForEveryCut) {
  const std::string text = "from /scratch/action-x7/a.cc and /scratch/action-x7 and /scratch/action-";
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      RootRemover remover(kRoot);
      std::string shown = remover.Feed(text.substr(0, first));
      shown += remover.Feed(text.substr(first, second - first));
      shown += remover.Feed(text.substr(second));
      shown += remover.Finish();
      EXPECT_EQ(shown, RemoveRoot(text, kRoot)) << first << ", " << second;
    }
  }
}

TEST(RootRemoverTest, KeepsNoMoreThanItMust) {
  RootRemover remover(kRoot);
  EXPECT_EQ(remover.Feed("done\n"), "done\n");
  EXPECT_EQ(remover.Feed("see /scr"), "see ");
  EXPECT_EQ(remover.Feed("ipt\n"), "/script\n");
}

}  // namespace
}  // namespace kernix::exec
