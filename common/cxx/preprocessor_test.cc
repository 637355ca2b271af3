// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/preprocessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"

namespace kernix::language {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Preprocessed Preprocess(const std::vector<LexedSource>& sources) {
  MacroBudget budget;
  return language::Preprocess(sources, budget);
}

std::string Expanded(const std::string& text) {
  const Preprocessed result = Preprocess({Lex(text, 0)});
  std::string joined;
  for (const Token& token : result.tokens) StrAppend(&joined, joined.empty() ? "" : " ", token.text);
  return joined;
}

std::vector<std::string> LiveComments(const std::string& text) {
  const Preprocessed result = Preprocess({Lex(text, 0)});
  std::vector<std::string> comments;
  for (const Comment& comment : result.comments) comments.emplace_back(comment.text);
  return comments;
}

TEST(PreprocessorTest, ExpandsMacros) {
  EXPECT_EQ(Expanded("#define N 10\nint a[N];"), "int a [ 10 ] ;");
  EXPECT_EQ(Expanded("#define F(x, y) x + y\nF(1, g(2, 3))"), "1 + g ( 2 , 3 )");
  EXPECT_EQ(Expanded("#define F() 1\nF() F"), "1 F");
  EXPECT_EQ(Expanded("#define A B\n#define B A\nA"), "A");
  EXPECT_EQ(Expanded("#define A 1\n#undef A\nA"), "A");
  EXPECT_EQ(Expanded("#define S(x) #x\nS(a b)"), "\"\"");
}

TEST(PreprocessorTest, PastesTokens) {
  EXPECT_EQ(Expanded("#define F(S) void f##S(int a##S)\nF(_x);"), "void f_x ( int a_x ) ;");
  EXPECT_EQ(Expanded("#define F(A, B) A##_##B\nF(x, y)"), "x_y");
  EXPECT_EQ(Expanded("#define F(A, B) A##B\nF(, y) F(x, )"), "y x");
  EXPECT_EQ(Expanded("#define T f32\n#define F(S) g##S h S\nF(T)"), "gT h f32");
}

// A few kilobytes that expand to 100,000 times `piece` of a name of 15,000 bytes.
std::string Bomb(const std::string& piece) {
  std::string text = StrCat("#define ONE(x) ", piece, "\n");
  std::string inner = "ONE";
  for (const std::string outer : {"TEN", "HUNDRED", "THOUSAND", "MYRIAD", "ALL"}) {
    StrAppend(&text, "#define ", outer, "(x)");
    for (int i = 0; i < 10; ++i) StrAppend(&text, " ", inner, "(x)");
    StrAppend(&text, "\n");
    inner = outer;
  }
  return StrCat(text, "ALL(", std::string(15'000, 'a'), ")\n");
}

TEST(PreprocessorTest, WhatMacrosMakeIsBoundedInBytes) {
  const size_t bound = MacroBudget().text + 1'000'000;
  for (const std::string piece : {"x##1", "x", "f(x, x##2)"}) {
    const std::string bomb = Bomb(piece);
    const Preprocessed result = Preprocess({Lex(bomb, 0)});
    size_t stored = 0;
    size_t named = 0;
    for (const std::string& text : result.storage) stored += text.size();
    for (const Token& token : result.tokens) named += token.text.size();
    EXPECT_LT(stored, bound) << piece;
    EXPECT_LT(named, bound) << piece;
  }
}

// As many macros as any real source has, and far below the limit.
TEST(PreprocessorTest, AMillionBytesOfMacrosAreExpanded) {
  std::string text = "#define KERNEL(N) void kernel_##N(int first_##N, int second_##N);\n";
  for (int i = 0; i < 10'000; ++i) StrAppend(&text, "KERNEL(", i, ")\n");
  EXPECT_TRUE(Expanded(text).ends_with("void kernel_9999 ( int first_9999 , int second_9999 ) ;"));
}

TEST(PreprocessorTest, ExpandsMacrosInMacros) {
  EXPECT_EQ(Expanded("#define ONE(S) void f##S();\n#define BOTH(X) ONE(_a) ONE(_b)\nBOTH(0)"),
            "void f_a ( ) ; void f_b ( ) ;");
}

TEST(PreprocessorTest, PassesVariableArguments) {
  EXPECT_EQ(Expanded("#define F(n, ...) void n(__VA_ARGS__)\nF(f, int a, int b)"), "void f ( int a , int b )");
  EXPECT_EQ(Expanded("#define F(...) <__VA_ARGS__>\nF() F(1)"), "< > < 1 >");
}

TEST(PreprocessorTest, GivesAnExpansionThePlaceOfItsUse) {
  const Preprocessed result = Preprocess({Lex("#define F void f();\n\n\nF", 0)});
  ASSERT_THAT(result.tokens, SizeIs(5));
  EXPECT_EQ(result.tokens[1].line, 4);
}

TEST(PreprocessorTest, SharesMacrosAmongSources) {
  const Preprocessed result = Preprocess({Lex("#define N 7", 0), Lex("N", 1)});
  ASSERT_THAT(result.tokens, SizeIs(1));
  EXPECT_EQ(result.tokens[0].text, "7");
  EXPECT_EQ(result.tokens[0].source, 1);
}

TEST(PreprocessorTest, MarksConditionalsAndDropsIfZero) {
  EXPECT_EQ(Expanded("#ifdef A\na\n#else\nb\n#endif\nc"), "#if a #else b #endif c");
  EXPECT_EQ(Expanded("#if 0\na\n#if X\nb\n#else\nc\n#endif\n#else\nd\n#endif"), "d");
  EXPECT_EQ(Expanded("#ifdef A\n#if 1\na\n#endif\n#if 0\nb\n#endif\n#endif\nc"), "#if a #endif c");
  EXPECT_EQ(Expanded("#endif\na\n#else\nb\n#if 1\nc"), "a b c");
  EXPECT_THAT(LiveComments("//@BE1\n#if 0\n//@BE2\nx\n//@BE3\n#endif\n//@BE4\ny //@BE5\n//@BE6"),
              ElementsAre("@BE1", "@BE4", "@BE5", "@BE6"));
  EXPECT_THAT(LiveComments("#if 0\n// @BE f\n#endif"), IsEmpty());
}

// A definition that may not be compiled keeps the name's earlier meaning.
TEST(PreprocessorTest, ShowsAllThatAMacroMayBe) {
  EXPECT_EQ(Expanded("#ifdef A\n#define X 1\n#else\n#define X 2\n#endif\nX"),
            "#if #else #endif #if 2 #else 1 #else X #endif");
  EXPECT_EQ(Expanded("#define X 1\n#ifdef A\n#undef X\n#endif\nX"), "#if #endif #if 1 #else X #endif");
  EXPECT_EQ(Expanded("#define X 1\n#ifdef A\n#undef X\n#define X 2\n#endif\nX"),
            "#if #endif #if 2 #else 1 #else X #endif");
  EXPECT_EQ(Expanded("#ifdef A\n#define X(a) a\n#else\n#define X 2\n#endif\nX(3)"),
            "#if #else #endif #if 2 ( 3 ) #else 3 #else X ( 3 ) #endif");
  EXPECT_EQ(Expanded("#ifdef A\n#define X(a) a\n#endif\nX"), "#if #endif X");
  EXPECT_EQ(Expanded("#ifdef A\n#define X 1\n#endif\n#define X 2\nX"), "#if #endif 2");
  EXPECT_EQ(Expanded("#ifdef A\n#define X 1\n#endif\n#undef X\nX"), "#if #endif X");
  EXPECT_EQ(Expanded("#define X 1\n#ifdef A\n#define X 1\n#endif\nX"), "#if #endif 1");
}

TEST(PreprocessorTest, DecidesWhatIsCertain) {
  EXPECT_EQ(Expanded("#define A\n#ifdef A\na\n#else\nb\n#endif"), "a");
  EXPECT_EQ(Expanded("#define A\n#if !defined(A)\na\n#elif defined A\nb\n#else\nc\n#endif"), "b");
  EXPECT_EQ(Expanded("#ifdef B\na\n#elif 1\nb\n#else\nc\n#endif"), "#if a #else b #endif");
  EXPECT_EQ(Expanded("#undef B\n#ifdef B\na\n#else\nb\n#endif"), "b");
  EXPECT_EQ(Expanded("#undef B\n#include \"b.h\"\n#ifdef B\na\n#else\nb\n#endif"), "#if a #else b #endif");
  EXPECT_EQ(Expanded("#if 0\na\n#elifdef B\nb\n#elifndef B\nc\n#endif"), "#if b #else c #endif");
  EXPECT_EQ(Expanded("#if defined(A) && B\na\n#endif\n#if\n#endif\n#ifdef\n#endif"),
            "#if a #endif #if #endif #if #endif");
  EXPECT_EQ(Expanded("#define A 0\n#if A\na\n#elif B\nb\n#endif"), "#if b #endif");
  EXPECT_EQ(Expanded("#define N 0\n#define A N\n#include \"a.h\"\n#if A\na\n#else\nb\n#endif"), "b");
  EXPECT_EQ(Expanded("#ifdef B\n#define A 0\n#else\n#define A 1\n#endif\n#if A\na\n#else\nb\n#endif"),
            "#if #else #endif #if a #else b #endif");
  EXPECT_EQ(Expanded("#ifndef A\n#define A 1\n#endif\nA"), "1");
  EXPECT_EQ(Expanded("#include \"a.h\"\n#ifndef A\n#define A 1\n#endif\nA"), "#if #endif #if 1 #else A #endif");
  EXPECT_EQ(Expanded("#include \"a.h\"\n#ifndef A\n#define A\na\n#endif"), "a");
}

// A definition in the branch before an #elif is not visible in the condition of the #elif.
TEST(PreprocessorTest, AsksAnElifAroundItsConditional) {
  EXPECT_EQ(Expanded("#ifdef A\n#define M 1\n#elif defined(M)\nb\n#else\nc\n#endif"), "#if #else b #else c #endif");
  EXPECT_EQ(Expanded("#ifdef A\n#define M 1\n#elif M\nb\n#else\nc\n#endif"), "#if #else b #else c #endif");
  EXPECT_EQ(Expanded("#define M 0\n#ifdef A\n#undef M\n#define M 1\n#elif M\nb\n#else\nc\n#endif"),
            "#if #else b #else c #endif");
  EXPECT_EQ(Expanded("#if 0\n#if 0\n#elif 1\na\n#endif\n#else\nb\n#endif\nc"), "b c");
}

TEST(PreprocessorTest, ExpandsWhatAnExpansionEndsWith) {
  EXPECT_EQ(Expanded("#define CAT(a, b) a##b\n#define FG(x) <x>\nCAT(F, G)(1) CAT(F, G) (2) CAT(F, G)"),
            "< 1 > < 2 > FG");
  EXPECT_EQ(Expanded("#define F(x) F\nF(1)(2)"), "F");
  EXPECT_EQ(Expanded("#define EMPTY\nf EMPTY (1)"), "f ( 1 )");
}

TEST(PreprocessorTest, TellsWhetherAHeaderMayBeTheUsers) {
  const auto includes = [](const std::string& text) { return Preprocess({Lex(text, 0)}).includes_user_headers; };
  for (const char* users :
       {"#include \"a/b.h\"", "#include A_H", "#include_next \"a.h\"", "#ifdef X\n#include \"a.h\""}) {
    EXPECT_TRUE(includes(users)) << users;
  }
  for (const char* other :
       {"#include <sys/x.h>", "#include \"brainevent/common.h\"", "#if 0\n#include \"a.h\"\n#endif"}) {
    EXPECT_FALSE(includes(other)) << other;
  }
}

TEST(PreprocessorTest, BoundsItsWork) {
  std::string doubling = "#define A0 x x\n";
  std::string vanishing = "#define E0\n";
  for (int i = 1; i < 90; ++i) {
    StrAppend(&doubling, "#define A", i, " A", i - 1, " A", i - 1, "\n");
    StrAppend(&vanishing, "#define E", i, " E", i - 1, " E", i - 1, "\n");
  }
  EXPECT_LT(Preprocess({Lex(doubling + "A89", 0)}).tokens.size(), 10'000'000u);
  EXPECT_LT(Preprocess({Lex(vanishing + "E89", 0)}).tokens.size(), 10'000'000u);

  std::string choices = "#define C0 x\n";
  for (int i = 1; i < 90; ++i) {
    const std::string body = StrCat(" C", i, " C", i - 1, " C", i - 1, "\n");
    StrAppend(&choices, "#ifdef A\n#define", body, "#else\n#define", body, "#undef C", i, "\n#define C", i, " y C",
              i - 1, " C", i - 1, "\n#endif\n");
  }
  EXPECT_LT(Preprocess({Lex(choices + "C89", 0)}).tokens.size(), 10'000'000u);

  std::string repeating;
  for (int i = 0; i < 7; ++i) StrAppend(&repeating, "#ifdef A", i, "\n#define X ", i, "\n#endif\n");
  StrAppend(&repeating, "#ifdef B\n#define X(y) b\n#endif\nX(X(X(X(");
  for (int i = 0; i < 10'000; ++i) repeating += "1 ";
  EXPECT_LT(Preprocess({Lex(repeating + "))))", 0)}).tokens.size(), 2'000'000u);

  std::string open = "#define F(x) x\n", nested = open;
  for (int i = 0; i < 100'000; ++i) {
    open += "F(";
    nested += "F(";
  }
  nested.append(100'000, ')');
  Preprocess({Lex(open, 0)});
  Preprocess({Lex(nested, 0)});
}

}  // namespace

}  // namespace kernix::language
