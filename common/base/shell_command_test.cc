// SPDX-License-Identifier: Apache-2.0
#include "common/base/shell_command.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

TEST(ShellCommandTest, QuotesForTheShell) {
  EXPECT_EQ(ShellCommand({"/usr/bin/g++", "-DA=1", "-DNAME=\"a b\"", "it's", "$HOME", ""}),
            "/usr/bin/g++ -DA=1 '-DNAME=\"a b\"' 'it'\\''s' '$HOME' ''");
}

}  // namespace
}  // namespace kernix
