// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/file_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"
#include "tests/support/test_util.h"

namespace kernix::language {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Status Check(const std::vector<TextView>& texts, bool all_texts = true) {
  const auto outside = [](std::string_view label, const Include& name) -> std::string {
    if (name.path == "/opt/tool/x.h" || (name.path == "../known.h" && name.quoted)) return "";
    return StrCat("not from ", label);
  };
  return CheckFileQuestions(texts, {.outside = outside, .all_texts = all_texts});
}
absl::Status Check(const std::string& text) { return Check({{"k.cc", text}}); }

// The line in the error, 0 if there is no error.
std::string Refused(const std::string& text) {
  const absl::Status status = Check(text);
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST) << text;
  return std::string(status.message());
}

TEST(FileQuestionsTest, PlainNamesPass) {
  EXPECT_THAT(Check("#if defined(__has_include) && __has_include(<a/b.h>)\n#elif __has_include(\"x.h\")\n#endif\n"),
              IsOk());
  EXPECT_THAT(Check("#ifdef __has_include\n# if __has_include_next ( <version> ) && X\n# endif\n#endif\n"), IsOk());
  EXPECT_THAT(Check("#if __has_include(<a/../b.h>)\n#endif\nconst char* s = \"__has_include(MACRO)\";"), IsOk());
  EXPECT_THAT(Check("// __has_include(MACRO)\n#error __has_include(\"/x\") is needed\n#if "
                    "__has_include(\"/opt/tool/x.h\")\n#endif"),
              IsOk());
}

TEST(FileQuestionsTest, WhatIsOutsideIsForTheRules) {
  EXPECT_EQ(Refused("\n#if __has_include(\"/etc/x.h\")\n#endif"), "k.cc:2: __has_include /etc/x.h: not from k.cc");
  EXPECT_EQ(Refused("#if 0\n#elif __has_include(<../x.h>)\n#endif"), "k.cc:2: __has_include ../x.h: not from k.cc");
  EXPECT_THAT(Refused("#if __has_include_next(\"a/../../known.h\")\n#endif"),
              StartsWith("k.cc:1: __has_include a/../../known.h"));
  EXPECT_THAT(Check("#if __has_include(\"../known.h\")\n#endif"), IsOk());
}

TEST(FileQuestionsTest, AHeaderThatAUserMayNameIsNotAskedForWhereHeDoesNot) {
  EXPECT_THAT(Check("#ifdef CONFIG\n#if __has_include(CONFIG)\n#endif\n#endif"), IsOk());
  EXPECT_THAT(Check("#if defined(CONFIG) && __has_include(CONFIG)\n#endif"), IsOk());
  EXPECT_THAT(Refused("#ifdef __FILE__\n#if __has_include(__FILE__)\n#endif\n#endif"), HasSubstr("cannot tell"));
}

// A text may redefine them in an excluded branch; the compiler does not.
TEST(FileQuestionsTest, MacrosOfTheCompilerAreWhatTheyAre) {
  for (const char* text :
       {"#if 0\n#define __FILE__ \"a.h\"\n#endif\n#if __has_include(__FILE__)\n#endif",
        "#if 0\n#define __STRING(x) \"a.h\"\n#endif\n#if __has_include(__STRING(/x))\n#endif",
        "#if 0\n#define __FILE__ \"a.h\"\n#endif\n#define P __FILE__\n#if __has_include(P)\n#endif"}) {
    EXPECT_THAT(Refused(text), HasSubstr("cannot tell")) << text;
  }
  EXPECT_THAT(Check("#define _HAS(x) __has_include(x)\n#if _HAS(<a.h>)\n#endif"), IsOk());
}

TEST(FileQuestionsTest, WrappersOfTheToolchainAreKnownByTheirNames) {
  EXPECT_EQ(Refused("#if TOML_HAS_INCLUDE(\"/x\")\n#endif"), "k.cc:1: __has_include /x: not from k.cc");
  EXPECT_THAT(Check("#if TOML_HAS_INCLUDE(<a.h>) && HAS_INCLUDE_B\n#endif"), IsOk());
}

TEST(FileQuestionsTest, WhatLooksLikeARawStringMayBeCode) {
  EXPECT_EQ(Refused("#define R\nconst char* a = R\"(\";\n#if __has_include(\"/x\")\n#endif\nconst char* b = \")\";\n"),
            "k.cc:3: __has_include /x: not from k.cc");
}

TEST(FileQuestionsTest, NamesThatCannotBeReadAreRefused) {
  EXPECT_THAT(Refused("\n\n#if __has_include(NAME)\n#endif"),
              StartsWith("k.cc:3: __has_include: kernix cannot tell which file"));
  for (const char* text :
       {"#define S(x) #x\n#if __has_include(S(/etc/x))\n#endif", "#if __has_include(\"a\" \"b\")\n#endif",
        "#if __has_include(__FILE__)\n#endif", "#if __has_include(\n#endif", "#if __has_include(<a.h)\n#endif",
        "#if __has_include()\n#endif\n#if __has_include(\"\")\n#endif",
        "#define Q(x) __has_include(x)\n#if Q(NAME)\n#endif"}) {
    EXPECT_THAT(Refused(text), HasSubstr(": __has_include: kernix cannot tell")) << text;
  }
}

TEST(FileQuestionsTest, AMacroOfKnownNamesPasses) {
  EXPECT_THAT(Check("#define NAME <a.h>\n#define OTHER NAME\n#if __has_include(OTHER)\n#endif"), IsOk());
  EXPECT_THAT(Check("#if X\n#define NAME <a.h>\n#else\n#define NAME \"b.h\"\n#endif\n#if __has_include(NAME)\n#endif"),
              IsOk());
  EXPECT_THAT(
      Refused("#if X\n#define NAME <a.h>\n#else\n#define NAME \"/etc/b.h\"\n#endif\n#if __has_include(NAME)\n#endif"),
      StartsWith("k.cc:6: __has_include /etc/b.h"));
  EXPECT_THAT(Refused("#define NAME <a.h>\n#undef NAME\n#define NAME </etc/x>\n#if __has_include(NAME)\n#endif"),
              StartsWith("k.cc:4"));
}

TEST(FileQuestionsTest, OneOfManyMeaningsIsNotForgotten) {
  std::string text = "#define NAME </etc/x>\n";
  for (int i = 0; i < 20; ++i) StrAppend(&text, "#define NAME <", i, ".h>\n");
  EXPECT_THAT(Refused(text + "#if __has_include(NAME)\n#endif"), HasSubstr("kernix cannot tell"));
  std::string same;
  for (int i = 0; i < 20; ++i) StrAppend(&same, "#define HAS(x) __has_include(x)\n");
  EXPECT_THAT(Check(same + "#if HAS(<a.h>)\n#endif"), IsOk());
}

TEST(FileQuestionsTest, MacrosThatAskAreFollowedToTheirUses) {
  const std::string wrapper =
      "#ifdef __has_include\n#define HAS(x) __has_include(x)\n#else\n#define HAS(x) 0\n#endif\n#define MY_HAS HAS\n"
      "#define HAS_ALL(...) (MY_HAS(__VA_ARGS__))\n#define HAS_IN(f) __has_include(<lib/f>)\n";
  EXPECT_THAT(Check(wrapper), IsOk());
  EXPECT_THAT(
      Check(wrapper + "#if defined(HAS) && HAS(<a/b.h>) && MY_HAS(\"c.h\") && HAS_ALL(<d>) && HAS_IN(x.h)\n#endif"),
      IsOk());
  for (const char* use : {"HAS(\"/etc/x\")", "MY_HAS(</etc/x>)", "HAS_ALL(</etc/x>)", "HAS_IN(../../x)", "HAS(NAME)",
                          "0 || MY_HAS (NAME)", "HAS_ALL(<a.h)"}) {
    EXPECT_THAT(Refused(StrCat(wrapper, "#if ", use, "\n#endif")), StartsWith("k.cc:9: __has_include")) << use;
  }
  EXPECT_THAT(Refused("#define A(f, x) f(x)\n#define NAME </etc/x>\n#if A(__has_include, NAME)\n#endif"),
              StartsWith("k.cc:3"));
}

TEST(FileQuestionsTest, WhatAWrapperIsGivenIsExpanded) {
  EXPECT_THAT(Refused("#define HAS(x) __has_include(x)\n#define lib ../..\n#if HAS(<lib/x.h>)\n#endif"),
              StartsWith("k.cc:3"));
}

TEST(FileQuestionsTest, PiecesThatAMacroJoinsAreSeen) {
  EXPECT_THAT(Refused("#define P(x) x##include(</etc/x>) + __has_include(<a>)\n#if P(__has_)\n#endif"),
              StartsWith("k.cc:2"));
}

TEST(FileQuestionsTest, TextsAreOneUnit) {
  const TextView wrapper{"inc/0/has.h", "#define HAS(x) __has_include(x)\n"},
      name{"inc/0/name.h", "#define NAME \"/etc/x\"\n"};
  const TextView use{"k.cc", "#if HAS(NAME)\n#endif\n"};
  for (const std::vector<TextView>& texts : {std::vector<TextView>{wrapper, name, use}, {use, name, wrapper}}) {
    EXPECT_EQ(Check(texts).message(), "k.cc:1: __has_include /etc/x: not from k.cc");
  }
  EXPECT_THAT(Check({use}), IsOk()) << "no macro that asks, as far as is known";
  EXPECT_FALSE(Check({use, wrapper}).ok());
  EXPECT_THAT(Check({use, wrapper}, /*all_texts=*/false), IsOk()) << "a header may define it";
}

TEST(FileQuestionsTest, OddSpellingsCount) {
  EXPECT_THAT(Refused("#if __has_\\\ninclude(NAME)\n#endif"), StartsWith("k.cc:1"));
  EXPECT_THAT(Refused("#if X \\ \n && __has_include \\\n (\"/et\\\nc/x\")\n#endif"),
              StartsWith("k.cc:1: __has_include /etc/x"));
  EXPECT_THAT(Refused("?\?=if __has_inc?\?/\nlude(NAME)\n#endif"), StartsWith("k.cc:1"));
  EXPECT_THAT(Refused("%:if __has_include(/**/NAME)\n%:endif"), StartsWith("k.cc:1"));
  EXPECT_THAT(Refused("#line __has_include(NAME)"), StartsWith("k.cc:1"));
}

TEST(FileQuestionsTest, CostsAreBounded) {
  std::string chain = "#define A0(x) __has_include(x)\n";
  for (int i = 1; i < 200; ++i) StrAppend(&chain, "#define A", i, "(x) A", i - 1, "(x)\n");
  EXPECT_FALSE(Check(chain + "#if A199(<a.h>)\n#endif").ok());
  std::string doubling = "#define A0(x) __has_include(x)\n";
  for (int i = 1; i < 15; ++i)
    StrAppend(&doubling, "#define A", i, "(x) A", i - 1, "(x) A", i - 1, "(x) A", i - 1, "(x) A", i - 1, "(x)\n");
  EXPECT_FALSE(Check(doubling + "#if A14(<a.h>)\n#endif").ok());
  EXPECT_FALSE(Check("#if __has_include(<a.h>) " + std::string(300'000, '+') + "\n#endif").ok());
}

}  // namespace
}  // namespace kernix::language
