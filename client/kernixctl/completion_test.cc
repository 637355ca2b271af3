// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "client/kernixctl/command.h"

namespace kernix::ctl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> Offers(const std::vector<std::string>& words) {
  ClientOptions options;
  std::vector<std::string> offers;
  for (const std::string& line : std::vector<std::string>(
           absl::StrSplit(CompletionLines(RootCommand(options), words), '\n', absl::SkipEmpty()))) {
    offers.push_back(line.substr(0, line.find('\t')));
  }
  return offers;
}

TEST(CompletionTest, CommandsAndTheirOptions) {
  EXPECT_THAT(Offers({""}), IsSupersetOf({"status", "cache", "compile", "completion"}));
  EXPECT_THAT(Offers({"comp"}), ElementsAre("compile", "completion"));
  EXPECT_THAT(Offers({"--"}), ElementsAre("--help", "--version", "--address", "--store"));
  EXPECT_THAT(Offers({"cache", ""}), ElementsAre("stats", "list", "show", "purge", "pin", "unpin", "verify"));
  EXPECT_THAT(Offers({"cache", "purge", "--"}), ElementsAre("--help", "--all", "--name", "--older-than", "--pinned"));
  EXPECT_THAT(Offers({"compile", "-"}), IsSupersetOf({"-h", "-o", "--output", "-O", "--print"}));
  EXPECT_THAT(Offers({"compile", "-"}), Not(Contains("file")));
  EXPECT_THAT(Offers({"nonsense", "st"}), ElementsAre("status"));
}

TEST(CompletionTest, ValuesOfOptions) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"compile", "--print", "s"}, {"compile", "--print", "=", "s"}, {"compile", "--print=s"}}) {
    EXPECT_THAT(Offers(words), ElementsAre("sass", "source"));
  }
  EXPECT_THAT(Offers({"compile", "--print", "="}), ElementsAre("ptx", "sass", "source", "resources"));
  EXPECT_THAT(Offers({"compile", "a.cu", "--output", ""}), ElementsAre(":files"));
  EXPECT_THAT(Offers({"compile", "-I", "in"}), ElementsAre(":folders"));
  EXPECT_THAT(Offers({"compile", ""}), ElementsAre(":files"));
  EXPECT_THAT(Offers({"completion", ""}), ElementsAre("bash", "zsh"));
  EXPECT_THAT(Offers({"cache", "list", "--name", ""}), IsEmpty());
}

TEST(CompletionTest, AValueIsNoCommand) {
  EXPECT_THAT(Offers({"--store", "cache", "comp"}), ElementsAre("compile", "completion"));
  EXPECT_THAT(Offers({"--store", "=", "cache", "comp"}), ElementsAre("compile", "completion"));
  EXPECT_THAT(Offers({"compile", "--verbose", ""}), ElementsAre(":files"));
}

}  // namespace

}  // namespace kernix::ctl
