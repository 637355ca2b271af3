// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/split_compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "daemon/plan/split_pass.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr char kText[] = "u/keep/unit.cudafe1.cpp";
constexpr char kPreamble[] =
    "# 1 \"u/unit.cu\"\n# 2 \"kernel.cu\"\nint of_preamble;\n# 1 \"/usr/include/a.h\"\nint a;\n";
constexpr char kRest[] = "# 9 \"kernel.cu\"\nint b;\n# 12 \"kernel.cu\"\nint c;\n";

Step HostCompile(const std::string& text) {
  Step step;
  step.action.argv = {"g++", "-c", "-x", "c++", "-DA", kText, "-o", "u/unit.o", "-MD", "-MF", "u/unit.o.d"};
  step.action.inputs = {exec::MakeInput("kernix-source/kernel.cu", "a source"), exec::MakeInput(kText, text)};
  step.action.outputs = {"u/unit.o", "u/unit.o.d"};
  step.reuse = Reuse{.dependencies = {"u/unit.o.d"}, .inputs = {kText}};
  return step;
}

std::optional<SplitCompile> Split(const std::string& text, std::string_view next_line = "7 \"kernel.cu\"") {
  return SplitHostCompile(HostCompile(text), kText, next_line);
}

bool Splits(const std::string& line) { return Split(StrCat(kPreamble, line, "\n", kRest)).has_value(); }

TEST(SplitCompileTest, SplitsBeforeTheFirstLineThatFollowsThePreamble) {
  const auto split = Split(StrCat(kPreamble, kRest));
  ASSERT_TRUE(split.has_value());
  EXPECT_THAT(split->preamble.action.argv,
              ElementsAre("g++", "-c", "-x", "c++-header", "-DA", "u/keep/unit.cudafe1.cpp", "-o",
                          "kernix-compiled/preamble.h.gch", "-MD", "-MF", "kernix-compiled/preamble.h.gch.d"));
  ASSERT_EQ(split->preamble.action.inputs.size(), 1u);
  EXPECT_EQ(split->preamble.action.inputs[0].path, "u/keep/unit.cudafe1.cpp");
  EXPECT_EQ(*split->preamble.action.inputs[0].content, kPreamble);
  EXPECT_EQ(CompiledHeaderOf(split->preamble), "kernix-compiled/preamble.h.gch");
  EXPECT_THAT(split->preamble.reuse->dependencies, ElementsAre("kernix-compiled/preamble.h.gch.d"));

  EXPECT_EQ(*split->rest.inputs[1].content, kRest);
  EXPECT_EQ(split->rest.inputs[1].digest, exec::BlobDigestOf(kRest));
  EXPECT_EQ(*split->rest.inputs[0].content, "a source");
  EXPECT_THAT(split->rest.outputs, ElementsAre("u/unit.o", "u/unit.o.d"));
  EXPECT_THAT(split->rest.argv, Contains("kernix-compiled/preamble.h"));
}

TEST(SplitCompileTest, ACppUnitIsSplitAfterItsIncludes) {
  Step compile;
  compile.action.argv = {"g++", "-c", "-O2", "-MD", "-MF", "u/unit.d", "-o", "u/unit.o", "u/unit.cpp"};
  compile.action.inputs = {
      exec::MakeInput("u/unit.cpp", "#include \"a.h\"\n#line 1 \"k.cpp\"\n#include <vector>\n\nint f();\n"),
      exec::MakeInput("u/prologue.h", "int g();"), exec::MakeInput("kernix-source/k.cpp", "a source")};
  compile.action.outputs = {"u/unit.o", "u/unit.d"};
  const auto split = SplitCppCompile(compile);
  ASSERT_TRUE(split.has_value());
  EXPECT_THAT(split->preamble.action.argv,
              ElementsAre("g++", "-x", "c++-header", "-c", "-O2", "-MD", "-MF", "kernix-compiled/preamble.h.gch.d",
                          "-o", "kernix-compiled/preamble.h.gch", "u/unit.cpp"));
  EXPECT_EQ(*split->preamble.action.inputs[0].content, "#include \"a.h\"\n#line 1 \"k.cpp\"\n#include <vector>\n");
  ASSERT_EQ(split->preamble.action.inputs.size(), 2u);
  EXPECT_EQ(split->preamble.action.inputs[1].path, "u/prologue.h");
  EXPECT_EQ(*FindInput(split->rest, "u/unit.cpp")->content, "#line 2 \"k.cpp\"\n\nint f();\n");
  ASSERT_NE(split->preprocess, nullptr);
  EXPECT_THAT(split->preprocess->action.argv, AllOf(Contains("-E"), Contains("-dD"), Not(Contains("-c"))));
  EXPECT_THAT(split->preprocess->action.outputs, Contains("kernix-compiled/preamble.ii"));

  compile.action.inputs = {exec::MakeInput("u/unit.cpp", "int f();\n")};
  EXPECT_FALSE(SplitCppCompile(compile).has_value());
}

TEST(SplitCompileTest, ATextThatDoesNotSayWhereThePreambleEndsIsNotSplit) {
  EXPECT_FALSE(Split(StrCat(kPreamble, kRest), "13 \"kernel.cu\"").has_value());
  EXPECT_FALSE(Split(StrCat(kPreamble, kRest), "7 \"other.cu\"").has_value());
  EXPECT_FALSE(Split(StrCat(kPreamble, "const char* s = \"# 9 \\\"kernel.cu\\\"\";\n")).has_value());
  EXPECT_FALSE(SplitHostCompile(HostCompile("x"), "u/another.cpp", "7 \"kernel.cu\"").has_value());
}

TEST(SplitCompileTest, WhatAPrecompiledHeaderWouldLoseKeepsThePreambleWithTheRest) {
  for (const char* balanced :
       {"int x;", "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wall\"\n#pragma GCC diagnostic pop",
        "#pragma GCC visibility push ( default )\n # pragma GCC visibility pop",
        "#pragma pack(push, 1)\n#pragma pack(pop)", "#pragma GCC unroll 4", "#define pragma 1"}) {
    EXPECT_TRUE(Splits(balanced)) << balanced;
  }
  for (const char* open :
       {"#pragma pack(1)", "#pragma pack ( push , 1 )", "#pragma GCC visibility push(hidden)",
        "  #  pragma GCC optimize(\"O0\")", "#pragma GCC target(\"avx2\")", "#pragma GCC diagnostic error \"-Wall\"",
        "#pragma GCC diagnostic push\nint x;", "#pragma GCC visibility pop\n#pragma GCC visibility push(hidden)",
        "_Pragma(\"pack(1)\")", "#pragma of_somebody"}) {
    EXPECT_FALSE(Splits(open)) << open;
  }
}

TEST(SplitCompileTest, PragmasThatAreOpenedForTheRestGoWithIt) {
  const std::string opened = "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n\n";
  const auto split = Split(StrCat(kPreamble, opened, kRest));
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(*split->preamble.action.inputs[0].content, kPreamble);
  EXPECT_EQ(*split->rest.inputs[1].content, StrCat(opened, kRest));
  EXPECT_EQ(Split(StrCat(opened, kRest))->preamble.action.inputs[0].digest, exec::BlobDigestOf(""));
  EXPECT_FALSE(Splits("#pragma GCC diagnostic push\n#pragma GCC diagnostic pop\n#pragma GCC diagnostic pop"));
}

// GCC defines these again when it has read a precompiled header.
TEST(SplitCompileTest, MacrosOfTheCompilerMustStay) {
  const std::string predefined = "# 0 \"<built-in>\"\n#define __SSE2__ 1\n# 0 \"<command-line>\"\n#define FLAG 1\n";
  const std::string own = "# 1 \"u/unit.cpp\"\n#define OWN 1\n#define QUIET _Pragma(\"GCC diagnostic push\")\n";
  EXPECT_TRUE(MayBeCompiled(StrCat(predefined, own, "#undef OWN\n#undef __SSE2__of_others\n")));
  EXPECT_FALSE(MayBeCompiled(StrCat(predefined, own, "#undef __SSE2__\n")));
  EXPECT_FALSE(MayBeCompiled(StrCat(predefined, own, "#undef FLAG\n")));
  EXPECT_FALSE(MayBeCompiled(StrCat(predefined, own, "#pragma pack(1)\n")));
}

}  // namespace
}  // namespace kernix::build
