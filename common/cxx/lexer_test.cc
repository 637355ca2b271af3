// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kernix::language {
namespace {

using testing::ElementsAre;

std::vector<std::string> Texts(std::string_view text) {
  std::vector<std::string> texts;
  for (const Token& token : Lex(text, 0).tokens) texts.emplace_back(token.text);
  return texts;
}

TEST(LexerTest, SplitsCode) {
  EXPECT_THAT(Texts("void f(const BE::Tensor& a, int* p);"),
              ElementsAre("void", "f", "(", "const", "BE", "::", "Tensor", "&", "a", ",", "int", "*", "p", ")", ";"));
  EXPECT_THAT(Texts("a->b ## c ... 1'000 1e-5f 0x1p+3 .5"),
              ElementsAre("a", "->", "b", "##", "c", "...", "1'000", "1e-5f", "0x1p+3", ".5"));
}

TEST(LexerTest, KeepsCommentsAndLiteralsOutOfCode) {
  EXPECT_THAT(Texts("a /* b // c */ d // e\nf"), ElementsAre("a", "d", "f"));
  EXPECT_THAT(Texts(R"(x = "// no \" comment" 'c' '\'' L"w" u8"y";)"),
              ElementsAre("x", "=", R"("// no \" comment")", "'c'", R"('\'')", "L\"w\"", "u8\"y\"", ";"));
  EXPECT_THAT(Texts("R\"x(a\n\")\" // )x\" b"), ElementsAre("R\"x(a\n\")\" // )x\"", "b"));
}

TEST(LexerTest, ReadsDigraphs) {
  EXPECT_THAT(Texts("a <% b <: 1 :> %> %:%: x<::T> <:::y"),
              ElementsAre("a", "{", "b", "[", "1", "]", "}", "##", "x", "<", "::", "T", ">", "[", "::", "y"));
  EXPECT_TRUE(Lex("%:include <x>", 0).tokens[0].starts_directive);
}

TEST(LexerTest, ReadsWordsOfAnyLanguage) {
  EXPECT_THAT(Texts("\xc3\xa9"
                    "f(\xce\xbb"
                    "2)"),
              ElementsAre("\xc3\xa9"
                          "f",
                          "(",
                          "\xce\xbb"
                          "2",
                          ")"));
}

TEST(LexerTest, StopsAtALimit) {
  EXPECT_TRUE(Lex("a b // @BE c", 0, 3).is_complete);
  const LexedSource source = Lex("a // @BE b\n// no annotation\n// @BE c\nd", 0, 3);
  EXPECT_FALSE(source.is_complete);
  EXPECT_EQ(source.tokens.size() + source.comments.size(), 3u);
}

// Every token appears once, together with two before it, two after it, and the rest of its preprocessor line.
TEST(LexerTest, ReadsInPieces) {
  std::string text;
  for (int i = 0; i < 9'000; ++i) text += i % 3 == 0 ? "\n#if a b c d\n" : " x /* y */ z // w\n";
  const std::vector<Token> all = Lex(text, 0).tokens;
  std::vector<const char*> seen;
  int pieces = 0;
  std::deque<std::string> storage;
  LexInPieces(Lexer(text, storage), [&](const std::vector<Token>& tokens, size_t first) {
    ++pieces;
    const bool is_last = tokens.back().text.data() == all.back().text.data();
    EXPECT_EQ(first, pieces == 1 ? 0u : 2u);
    EXPECT_TRUE(is_last || !tokens.back().in_directive || tokens.back().text == "d");
    for (size_t i = first; i < tokens.size() - (is_last ? 0 : 2); ++i) seen.push_back(tokens[i].text.data());
  });
  EXPECT_GT(pieces, 3);
  ASSERT_EQ(seen.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(seen[i], all[i].text.data());
}

TEST(LexerTest, CountsLines) {
  const LexedSource source = Lex("a\n/* \n\n */ b\n\"x\\\ny\" c R\"(\n\n)\" d\r\ne", 3);
  std::vector<int> lines;
  for (const Token& token : source.tokens) lines.push_back(token.line);
  EXPECT_THAT(lines, ElementsAre(1, 4, 5, 6, 6, 8, 9));
  EXPECT_EQ(source.tokens[0].source, 3);
}

TEST(LexerTest, MarksDirectivesToTheirContinuedEnd) {
  const LexedSource source = Lex("#define A(x) \\\n  x\nint a; # b", 0);
  std::string marks;
  for (const Token& token : source.tokens) marks += token.starts_directive ? '#' : token.in_directive ? 'd' : '-';
  EXPECT_EQ(marks, "#dddddd-----");
}

TEST(LexerTest, TellsAMacroWithParametersFromOneWithout) {
  EXPECT_FALSE(Lex("#define A(x)", 0).tokens[3].space_before);
  EXPECT_TRUE(Lex("#define A (x)", 0).tokens[3].space_before);
}

// A splice (a backslash, the end of its line, and any blanks between them) is not part of the text.
TEST(LexerTest, TokensMayBeSpelledOverSeveralLines) {
  EXPECT_THAT(Texts("__has_inc\\\nlude(x)"), ElementsAre("__has_include", "(", "x", ")"));
  EXPECT_THAT(Texts("a\\\n\\ \t\nb\\\r\nc d\\"), ElementsAre("abc", "d", "\\"));
  EXPECT_THAT(Texts("1\\\n'0\\\n00 -\\\n> :\\\n: %:\\\n%: \"a\\\nb\" 'c\\\n'"),
              ElementsAre("1'000", "->", "::", "##", "\"ab\"", "'c'"));
  EXPECT_THAT(Texts("a /\\\n* b *\\\n/ c /\\\n/ d \\ \n e\nf"), ElementsAre("a", "c", "f"));
  EXPECT_THAT(Texts("\\\na"), ElementsAre("a"));
  EXPECT_THAT(Texts("a\\b"), ElementsAre("a", "\\", "b"));
}

TEST(LexerTest, SplicesAreCounted) {
  const LexedSource source = Lex("a\\\nb c\\\n\\\n d\n#e\\\n f\ng", 0);
  std::vector<int> lines;
  std::string marks;
  for (const Token& token : source.tokens) {
    lines.push_back(token.line);
    marks += token.in_directive ? 'd' : '-';
  }
  EXPECT_THAT(lines, ElementsAre(1, 2, 4, 5, 5, 6, 7));
  EXPECT_EQ(marks, "---ddd-");
  EXPECT_FALSE(Lex("#define A\\\n(x)", 0).tokens[3].space_before);
}

TEST(LexerTest, RawStringsHoldWhatLooksLikeASplice) {
  EXPECT_THAT(Texts("R\"(a\\\n)\\\n\")\" b"), ElementsAre("R\"(a\\\n)\\\n\")\"", "b"));
  EXPECT_THAT(Texts("R\\\n\"(a b)\" c"), ElementsAre("R\\\n\"(a b)\"", "c"));
  EXPECT_THAT(Texts("R\"no delimiter(a)\" b"), ElementsAre("R", "\"no delimiter(a)\"", "b"));
}

TEST(LexerTest, TheNameOfAHeaderIsOneToken) {
  EXPECT_THAT(Texts("#include <a//b's.h> // c"), ElementsAre("#", "include", "<a//b's.h>"));
  EXPECT_THAT(Texts("#include_next \"a\\b.h\""), ElementsAre("#", "include_next", "\"a\\b.h\""));
  EXPECT_THAT(Texts("#import <a\\\n.h>"), ElementsAre("#", "import", "<a.h>"));
  EXPECT_THAT(Texts("#include MACRO <a>"), ElementsAre("#", "include", "MACRO", "<", "a", ">"));
  EXPECT_THAT(Texts("#include <open\n>"), ElementsAre("#", "include", "<", "open", ">"));
  EXPECT_THAT(Texts("#include\n<a>"), ElementsAre("#", "include", "<", "a", ">"));
  EXPECT_THAT(
      Texts("#if __has_include(<a/*.h>) && b < c && d > e"),
      ElementsAre("#", "if", "__has_include", "(", "<a/*.h>", ")", "&", "&", "b", "<", "c", "&", "&", "d", ">", "e"));
}

// The body may contain the parameter.
TEST(LexerTest, TheNameOfAHeaderInAMacroIsPlainTokens) {
  EXPECT_THAT(Texts("#define F(x) __has_include(<x>)"),
              ElementsAre("#", "define", "F", "(", "x", ")", "__has_include", "(", "<", "x", ">", ")"));
}

TEST(LexerTest, PassesOverWhatIsOnNoDirective) {
  const std::string_view text = "a \"#b\nc /* \n */ #d\n/* \n */ #e 1'0\nR\"(\n#f)\" '#' .5'0\n%:g \\\n h\n";
  std::deque<std::string> storage;
  Lexer lexer(text, storage);
  std::vector<std::string> texts;
  std::vector<int> lines;
  for (Token token; lexer.NextInDirective(token);) {
    texts.emplace_back(token.text);
    lines.push_back(token.line);
  }
  EXPECT_THAT(texts, ElementsAre("#", "e", "1'0", "#", "g", "h"));
  EXPECT_THAT(lines, ElementsAre(5, 5, 5, 8, 8, 9));
}

TEST(LexerTest, CollectsLineCommentsWithAnnotations) {
  const LexedSource source =
      Lex("// @BE one\na // @BE two \\\n still two\n/* // @BE none */ \"// @BE none\" b // none", 0);
  ASSERT_EQ(source.comments.size(), 2u);
  EXPECT_EQ(source.comments[0].text, " @BE one");
  EXPECT_EQ(source.comments[0].next_token, 0u);
  EXPECT_EQ(source.comments[1].text, " @BE two \\\n still two");
  EXPECT_EQ(source.comments[1].line, 2);
}

TEST(LexerTest, SurvivesWhatHasNoEnd) {
  for (const char* text : {"\"abc", "'", "R\"(", "R\"abc", "/* x", "//", "#", "a\\", "\\\r", "\"\\", "u8R\"", "'\\\n",
                           "\\\n", "#include <", "#include \"\\\n"}) {
    SCOPED_TRACE(text);
    Lex(text, 0);
  }
  EXPECT_THAT(Texts("\"open\nnext"), ElementsAre("\"open", "next"));
}

TEST(LexerTest, KnowsIdentifiers) {
  EXPECT_TRUE(IsPlainIdentifier("_a1"));
  EXPECT_FALSE(IsPlainIdentifier("1a"));
  EXPECT_FALSE(IsPlainIdentifier(""));
  EXPECT_FALSE(IsPlainIdentifier("a$"));
  EXPECT_FALSE(IsPlainIdentifier("class"));
  EXPECT_FALSE(IsPlainIdentifier("caf\xc3\xa9"));
}

}  // namespace
}  // namespace kernix::language
