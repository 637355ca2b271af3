// SPDX-License-Identifier: Apache-2.0
#include "common/flags/flag_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
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

}  // namespace kernix::flags
