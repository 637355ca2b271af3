// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/include_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "name" -> q:name, <name> -> a:name, MACRO -> c:MACRO, with ? for a question and + for the next one; then @line.
std::vector<std::string> Scan(std::string_view text) {
  std::vector<std::string> found;
  for (const ScannedInclude& include : ScanIncludes(text).includes) {
    const char* form = include.target.form == IncludeForm::kQuoted   ? "q:"
                       : include.target.form == IncludeForm::kAngled ? "a:"
                                                                     : "c:";
    found.push_back(
        StrCat(include.question ? "?" : "", include.next ? "+" : "", form, include.target.name, "@", include.line));
  }
  return found;
}

TEST(IncludeScanTest, FindsAllForms) {
  EXPECT_THAT(Scan("#include \"a.h\"\n#include <b/c.h>\n  #  include MACRO\n#include_next <d.h>\n#import \"e.h\"\n"),
              ElementsAre("q:a.h@1", "a:b/c.h@2", "c:MACRO@3", "+a:d.h@4", "q:e.h@5"));
}

TEST(IncludeScanTest, LooksIntoAllBranches) {
  EXPECT_THAT(Scan("#if 0\n#include \"a.h\"\n#else\n#include \"b.h\"\n#endif"), ElementsAre("q:a.h@2", "q:b.h@4"));
}

TEST(IncludeScanTest, FindsQuestions) {
  EXPECT_THAT(Scan("#if __has_include(\"a.h\") && __has_include( <b.h> )\n#elif __has_include_next(<c.h>)\n"
                   "#define HAS(x) __has_include(x)\n"),
              ElementsAre("?q:a.h@1", "?a:b.h@1", "?+a:c.h@2", "?c:x@3"));
}

TEST(IncludeScanTest, KnowsComments) {
  EXPECT_THAT(Scan("// #include \"a.h\"\n/* \n#include \"b.h\"\n*/ #include \"c.h\"\n#/* */include/**/\"d.h\" // x\n"
                   "// goes on \\\n#include \"e.h\"\n"),
              ElementsAre("q:c.h@4", "q:d.h@5"));
}

TEST(IncludeScanTest, KnowsLiterals) {
  EXPECT_THAT(
      Scan("const char* a = \"/*\";\n#include \"a.h\"\nconst char* b = \"\\\"//\"; char c = '\"'; char d = '\\'';\n"
           "#include \"b.h\"\nint n = 1'000'000; /* ' */\n#include \"c.h\"\n"),
      ElementsAre("q:a.h@2", "q:b.h@4", "q:c.h@6"));
}

TEST(IncludeScanTest, KnowsRawStrings) {
  EXPECT_THAT(
      Scan("auto a = R\"x(\n#include \"no.h\"\n)\" )x\";\n#include \"a.h\"\nauto b = u8R\"(\")\";\n#include \"b.h\"\n"),
      ElementsAre("q:a.h@4", "q:b.h@6"));
}

TEST(IncludeScanTest, JoinsLines) {
  EXPECT_THAT(Scan("#inc\\\nlude \\\r\n \"a.h\"\nint x;\n#include \"b.h\"\n"), ElementsAre("q:a.h@3", "q:b.h@5"));
}

// The client and the daemon once had a lexer each; these are the texts that the two read differently.
TEST(IncludeScanTest, ReadsSplicesAsTheDaemonDoes) {
  EXPECT_THAT(Scan("/\\\n* *\\\n/ #include \"a.h\"\n"), ElementsAre("q:a.h@3"));
  EXPECT_THAT(Scan("/\\\n/ \\  \n#include \"no.h\"\n#include \"b.h\"\n"), ElementsAre("q:b.h@4"));
  EXPECT_THAT(Scan("%\\\n:inc\\ \nlude <a//\\\nb.h>\n"), ElementsAre("a:a//b.h@3"));
  EXPECT_THAT(Scan("const char* s = R\\\n\"(\n#include \"no.h\"\n)\";\n#include \"c.h\"\n"), ElementsAre("q:c.h@5"));
}

TEST(IncludeScanTest, AMacroMayAsk) {
  EXPECT_THAT(Scan("#define HAS_A __has_include(\"a.h\")\n#define HAS_B __has_include_next(<b.h>)\n"),
              ElementsAre("?q:a.h@1", "?+a:b.h@2"));
}

TEST(IncludeScanTest, AnUnfinishedLiteralEndsWithItsLine) {
  EXPECT_THAT(
      Scan("#error don't do this\n#include \"a.h\"\n\"open\n#include \"b.h\"\n#include \"open\n#include <open\n"),
      ElementsAre("q:a.h@2", "q:b.h@4"));
}

TEST(IncludeScanTest, OnlyTheStartOfALineIsADirective) { EXPECT_THAT(Scan("int x; #include \"a.h\"\n"), IsEmpty()); }

TEST(IncludeScanTest, NotesWhatMacrosStandFor) {
  const ScannedText text =
      ScanIncludes("#define A \"a.h\"\n#define B <b.h>\n#define C A\n#define F(x) \"no.h\"\n#define E\n");
  ASSERT_EQ(text.definitions.size(), 3u);
  EXPECT_EQ(text.definitions.at("A")[0].name, "a.h");
  EXPECT_EQ(text.definitions.at("B")[0].form, IncludeForm::kAngled);
  EXPECT_EQ(text.definitions.at("C")[0].form, IncludeForm::kComputed);
  EXPECT_EQ(text.definitions.at("C")[0].name, "A");
}

TEST(IncludeScanTest, AnyBytesAreSafe) {
  const std::string pieces[] = {"#",      "include",
                                "\"",     "<",
                                ">",      "\\",
                                "\n",     "'",
                                "R\"",    "(",
                                "/*",     "//",
                                "*/",     std::string(1, '\0'),
                                "define", " ",
                                "\xff",   "__has_include",
                                "\r",     "0"};
  // All sequences of three pieces and an end.
  for (const std::string& a : pieces) {
    for (const std::string& b : pieces) {
      for (const std::string& c : pieces) {
        (void)Scan(a + b + c);
        (void)Scan("#include " + a + b + c);
      }
    }
  }
}

TEST(IncludeScanTest, AByteOrderMarkIsNoPartOfTheFirstLine) {
  const ScannedText text = ScanIncludes("\xef\xbb\xbf#include \"a.h\"\r\n");
  ASSERT_EQ(text.includes.size(), 1u);
  EXPECT_EQ(text.includes[0].target.name, "a.h");
}

}  // namespace
}  // namespace kernix
