// SPDX-License-Identifier: Apache-2.0
#include "common/flags/flag_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::flags {
namespace {

using ::testing::ElementsAre;

constexpr Rule kRules[] = {
    Anyone("-I *|-I*", Meaning::kIncludePath),
    Anyone("-std=*|--std=*", Meaning::kStandard),
    Anyone("-reg:*", Meaning::kThreads),
    Anyone("-f[no-]inline[=*]"),
    Anyone("-c"),
    OwnDaemon("-fin*", "why"),
    Nobody("-fi*", "because"),
};
constexpr Table kTable = {kRules};
constexpr Table kTwoDashes = {.rules = kRules, .two_dashes = true};

std::string Shown(const Table& table, const std::vector<std::string>& words) {
  std::string shown;
  for (const Flag& flag : ReadAll(table, words)) {
    StrAppend(&shown, shown.empty() ? "" : " ", flag.rule == nullptr ? "?" : flag.rule->spellings.substr(0, 3), "/",
              static_cast<int>(flag.user()), "/", flag.value, flag.lacks_value ? "!" : "");
  }
  return shown;
}

TEST(FlagTableTest, AValueFollowsAsTheSpellingSays) {
  EXPECT_EQ(Shown(kTable, {"-Ia", "-I", "b", "-I=c", "-I"}), "-I /0/a -I /0/b -I /0/=c -I /0/!");
  EXPECT_EQ(Shown(kTable, {"-std=a", "--std=b", "-std", "-std="}), "-st/0/a -st/0/b ?/0/ -st/0/");
  // An empty value after '=' is no value: the next word is a separate flag.
  EXPECT_EQ(Shown(kTable, {"-reg=1", "-reg", "2", "-reg=", "-I3", "-reg", "x"}),
            "-re/0/1 -re/0/2 -re/0/ -I /0/3 -re/0/x");
  EXPECT_EQ(Shown(kTable, {"-finline", "-fno-inline=1", "-c", "-c=1", "-cx"}), "-f[/0/ -f[/0/1 -c/0/ -c/0/1 ?/0/");
}

TEST(FlagTableTest, TheFirstRuleThatFitsCounts) {
  EXPECT_EQ(Shown(kTable, {"-inline", "-finline=x", "-final", "-file", "-f", "file", ""}),
            "?/0/ -f[/0/x -fi/1/al -fi/2/le ?/0/ ?/0/ ?/0/");
  EXPECT_EQ(ReadAll(kTable, {"-final"})[0].reason(), "why");
}

TEST(FlagTableTest, SomeToolsKnowASecondDash) {
  EXPECT_EQ(Shown(kTable, {"--reg=1"}), "?/0/");
  EXPECT_EQ(Shown(kTwoDashes, {"--reg=1", "-reg=1", "---reg=1"}), "-re/0/1 -re/0/1 ?/0/");
}

TEST(FlagTableTest, ATableMayGoOnInAnother) {
  constexpr Rule kMore[] = {Nobody("-Ix", "not this one")};
  const Table table = {.rules = kMore, .otherwise = &kTable};
  EXPECT_EQ(Shown(table, {"-Ix", "-Iy"}), "-Ix/2/ -I /0/y");
}

TEST(FlagTableTest, WordsOfAFlagStayAsTheyWere) {
  const std::vector<Flag> flags = ReadAll(kTable, {"-I", "a", "-std=b"});
  ASSERT_EQ(flags.size(), 2u);
  EXPECT_THAT(flags[0].words, ElementsAre("-I", "a"));
  EXPECT_THAT(flags[1].words, ElementsAre("-std=b"));
  EXPECT_TRUE(Has(kTable, {"-I", "a", "-std=b"}, Meaning::kStandard));
  EXPECT_FALSE(Has(kTable, {"-I", "-std=b"}, Meaning::kStandard));
}

// Words that match this spelling, with all optional parts.
std::vector<std::vector<std::string>> Spelled(std::string_view spelling) {
  const std::string value = "x";
  const std::string text = absl::StrReplaceAll(ToAbsl(spelling), {{"[", ""}, {"]", ""}});
  if (text.ends_with(":*")) {
    const std::string name = text.substr(0, text.size() - 2);
    return {{name, value}, {StrCat(name, "=", value)}};
  }
  if (text.ends_with(" *")) return {{text.substr(0, text.size() - 2), value}};
  return {{absl::StrReplaceAll(text, {{"*", value}})}};
}

// No row of a table hides a later one.
TEST(FlagTableTest, EverySpellingIsThatOfItsRow) {
  for (const Table* table : {&kCompiler, &kCompilerAtLink, &kAssembler, &kLinker, &kNvcc, &kPtxas, &kCudafe}) {
    for (const Rule& rule : table->rules) {
      for (const absl::string_view spelling : absl::StrSplit(ToAbsl(rule.spellings), '|')) {
        for (const std::vector<std::string>& words : Spelled({spelling.data(), spelling.size()})) {
          const std::vector<Flag> flags = ReadAll(*table, words);
          EXPECT_EQ(flags.size(), 1u) << spelling;
          EXPECT_EQ(flags[0].rule, &rule) << spelling << " is read as " << flags[0].rule->spellings;
          EXPECT_EQ(flags[0].user(), rule.user) << spelling;
        }
      }
    }
  }
}

}  // namespace

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
  for (const char* word : {"-O3 -march=native",
                           "-O3  --param=x=1",
                           "-I/a -I/b",
                           "-I /a",
                           "-DA -UB",
                           "-DA=8 -O3",
                           "-DT=unsigned int -DB",
                           "-std=c++20 -g",
                           "-fopenmp -pthread",
                           "-DA=\"x y\" -DB",
                           "-D A=8",
                           "-unknown -other",
                           "-DA=(1) -fopenmp",
                           "-isystem /a",
                           "-DA=8\t-DB=9",
                           "-O3 \t-g",
                           "-I\t/a",
                           "-DA=8 -g",
                           "-DA=8 -w",
                           "-DA=8 -pg",
                           "-DA=8 -s",
                           "-DA=8 -O",
                           "-DA=8 -pthread"}) {
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
