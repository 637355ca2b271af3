// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/leading_includes.h"

#include <gtest/gtest.h>

namespace kernix::language {
namespace {

// What follows the leading includes, after what the compiler calls its first line.
std::string After(std::string_view unit) {
  const std::optional<LeadingIncludes> found = FindLeadingIncludes(unit, "u.cu");
  return found ? found->next_line + "|" + std::string(unit.substr(found->end)) : "none";
}

TEST(LeadingIncludesTest, EndWithTheLastBeforeTheCode) {
  EXPECT_EQ(After("#include <a>\n#include \"b.h\"\nint x;\n#include <c>\n"), "3 \"u.cu\"|int x;\n#include <c>\n");
  EXPECT_EQ(After("// A kernel.\n/* of\n two lines */\n\n#pragma once\n#include <a>\n#define N 3\nint x;\n"),
            "7 \"u.cu\"|#define N 3\nint x;\n");
  EXPECT_EQ(After("#include <a>  // why\r\nint x;\n"), "2 \"u.cu\"|int x;\n");
  EXPECT_EQ(After("#include <a> /* why */\nint x;\n"), "2 \"u.cu\"|int x;\n");
}

TEST(LeadingIncludesTest, LinesHaveTheNamesThatDirectivesGiveThem) {
  EXPECT_EQ(After("#include <a>\n#line 1 \"my \\\"k\\\".cu\"\n\n#include <b>\nint x;\n"),
            "3 \"my \\\"k\\\".cu\"|int x;\n");
  EXPECT_EQ(After("#line 40 \"k.cu\"\n#include <b>\nint x;\n"), "41 \"k.cu\"|int x;\n");
}

TEST(LeadingIncludesTest, ADirectiveThatComesNextNamesTheCode) {
  const auto code_after = [](std::string_view unit) { return FindLeadingIncludes(unit, "u.cu")->code_line; };
  EXPECT_EQ(code_after("#include <a>\nint x;\n"), "2 \"u.cu\"");
  EXPECT_EQ(code_after("#include <a>\n#line 1 \"k.cu\"\n\nint x;\n"), "1 \"k.cu\"");
  EXPECT_EQ(code_after("#include <a>\n\n #line 7 \"k.cu\"\n#define N 1\nint x;\n"), "7 \"k.cu\"");
  EXPECT_EQ(code_after("#include <a>\n#define N 1\n#line 1 \"k.cu\"\nint x;\n"), "2 \"u.cu\"");
  EXPECT_EQ(code_after("#include <a>\n#line 1 \"k.cu\"\n#line 5 \"l.cu\"\nint x;\n"), "1 \"k.cu\"");
  EXPECT_EQ(code_after("#include <a>\n#line 1 \"k.cu\"\n#include <b>\nint x;\n"), "2 \"k.cu\"");
  EXPECT_EQ(code_after("#include <a>\n#\\\nline 1 \"k.cu\"\nint x;\n"), "1 \"k.cu\"");
}

TEST(LeadingIncludesTest, NoConditionIsOpenAtTheEnd) {
  EXPECT_EQ(After("#if N > 1\n#include <a>\n#endif\n#include <b>\nint x;\n"), "5 \"u.cu\"|int x;\n");
  EXPECT_EQ(After("#if N > 1\n#include <a>\n#else\n#include <b>\n#endif\nint x;\n"), "none");
  EXPECT_EQ(After("#include <a>\n#ifdef N\n#include <b>\nint x;\n#endif\n"),
            "2 \"u.cu\"|#ifdef N\n#include <b>\nint x;\n#endif\n");
  EXPECT_EQ(After("#include <a>\n#if N\n#define M\n#endif\nint x;\n"), "2 \"u.cu\"|#if N\n#define M\n#endif\nint x;\n");
  EXPECT_EQ(After("#endif\n#include <a>\nint x;\n"), "none");
}

TEST(LeadingIncludesTest, WhatIsNotCertainEndsThemOrThereAreNone) {
  EXPECT_EQ(After(""), "none");
  EXPECT_EQ(After("int x;\n#include <a>\n"), "none");
  EXPECT_EQ(After("#define N 3\n"), "none");
  EXPECT_EQ(After("#include <a>"), "none");  // no line follows
  EXPECT_EQ(After("#include <a> /* of\n two lines */\nint x;\n"), "none");
  EXPECT_EQ(After("#include <a>  // why ?\?/\n two lines\nint x;\n"), "none");
  EXPECT_EQ(After("#include <a>  // \\\n two lines\nint x;\n"), "none");
  EXPECT_EQ(After("#include <a>\n#line NUMBER \"b\"\n#include <c>\nint x;\n"),
            "2 \"u.cu\"|#line NUMBER \"b\"\n#include <c>\nint x;\n");
  EXPECT_EQ(After("#include <a>\n# 7 \"b\"\n#include <c>\nint x;\n"), "2 \"u.cu\"|# 7 \"b\"\n#include <c>\nint x;\n");
  EXPECT_EQ(After("#include <a>\n#if 0\n#line 7 \"b\"\n#endif\n#include <c>\nint x;\n"),
            "2 \"u.cu\"|#if 0\n#line 7 \"b\"\n#endif\n#include <c>\nint x;\n");
}

}  // namespace
}  // namespace kernix::language
