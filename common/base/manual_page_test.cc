// SPDX-License-Identifier: Apache-2.0
//
// install_test has groff read the real pages.
#include "common/base/manual_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr char kHelp[] =
    "First.\n.Second isn't.\n\nExit codes: 0 done; 1 failed.\n\nThird.\n\nExamples:\n  a\\b --c\n  d";

std::string After(const std::function<void(ManualPage&)>& write) {
  ManualPage page("name", 1, "Does it.");
  const size_t before = page.text().size();
  write(page);
  return page.text().substr(before);
}

TEST(ManualPageTest, BeginsWithItsName) {
  const ManualPage page("kernixctl", 1, "Controls it.");
  EXPECT_THAT(page.text(), StartsWith(".TH KERNIXCTL 1 \"\" \"kernix "));
  EXPECT_THAT(page.text(), EndsWith("\n.SH \"NAME\"\nkernixctl \\- Controls it\n"));
}

TEST(ManualPageTest, TextIsEscapedAndKeepsIndentedLines) {
  EXPECT_EQ(After([](ManualPage& page) { page.Text("Examples:\n  a\\b --c\n\n.d isn't"); }),
            ".PP\nExamples:\n.nf\n  a\\eb \\-\\-c\n.fi\n.PP\n\\&.d isn\\(aqt\n");
  EXPECT_EQ(After([](ManualPage& page) { page.Item("-o, --output FILE", "Say \"x\""); }),
            ".TP\n.B \"\\-o, \\-\\-output FILE\"\nSay \\(dqx\\(dq\n");
}

TEST(ManualPageTest, HelpBecomesSections) {
  EXPECT_EQ(After([](ManualPage& page) { page.Description(kHelp); }),
            ".PP\nFirst.\n\\&.Second isn\\(aqt.\n.PP\nThird.\n");
  EXPECT_EQ(After([](ManualPage& page) { page.ClosingSections(kHelp); }),
            ".SH \"EXIT STATUS\"\n.PP\n0 done; 1 failed.\n"
            ".SH \"EXAMPLES\"\n.PP\n.nf\n  a\\eb \\-\\-c\n  d\n.fi\n");
}

}  // namespace
}  // namespace kernix
