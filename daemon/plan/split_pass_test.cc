// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/split_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/strings.h"
#include "daemon/exec/action_digest.h"
#include "daemon/language/write/translation_unit.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr char kUnit[] = "u/unit.cu";

Phases OnePass(const std::string& text) {
  Step step;
  step.action.argv = {"g++", "-E",   "-Iinc/0", "-include", "cuda_runtime.h", kUnit,
                      "-o",  "a.ii", "-MD",     "-MF",      "a.ii.d"};
  step.action.inputs = {exec::MakeInput(kUnit, text), exec::MakeInput("kernix-source/kernel.cu", text),
                        exec::MakeInput("kernix-macros/cuda_runtime.h", "text")};
  step.action.outputs = {"a.ii", "a.ii.d"};
  Phases phases;
  phases.preprocess = {step};
  phases.unit = kUnit;
  return phases;
}

std::string InputOf(const Step& step, const std::string& path) {
  for (const exec::InputFile& input : step.action.inputs) {
    if (input.path == path) return std::string(*input.content);
  }
  return "none";
}

std::string UnitOf(const Step& step) { return InputOf(step, kUnit); }

std::vector<std::string> Paths(const Step& step) {
  std::vector<std::string> paths;
  for (const exec::InputFile& input : step.action.inputs) paths.push_back(input.path);
  return paths;
}

constexpr char kText[] = "#include <a.h>\nint x;\n";

TEST(SplitPassTest, ThePreambleAndWhatFollowsAreReadApart) {
  const std::optional<PreamblePass> split = SplitPass(OnePass(kText), 0);
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->next_line, "2 \"u/unit.cu\"");
  EXPECT_THAT(UnitOf(split->rest), AllOf(StartsWith("#line 2 \"u/unit.cu\"\nint x;\n"), EndsWith("\n__COUNTER__\n")));
  EXPECT_THAT(split->rest.action.argv, AllOf(Not(Contains("cuda_runtime.h")), Contains(kPreambleMacros)));
  const PreambleForm& form = split->forms[0];
  EXPECT_EQ(UnitOf(form.macros_after), "#include <a.h>\n");
  EXPECT_EQ(UnitOf(form.alone), "#include <a.h>\n;\n");
  EXPECT_EQ(UnitOf(form.definitions_after), "#include <a.h>\n");
  EXPECT_EQ(UnitOf(split->macros_before), "");
  EXPECT_THAT(form.macros_after.action.argv, AllOf(Contains("cuda_runtime.h"), Contains("-dM"), Not(Contains("a.ii"))));
  EXPECT_THAT(form.definitions_after.action.argv, AllOf(Contains("cuda_runtime.h"), Contains("-dD")));
  EXPECT_THAT(split->macros_before.action.argv, AllOf(Not(Contains("cuda_runtime.h")), Contains("-dM")));
  EXPECT_NE(split->macros_before.action.outputs, form.macros_after.action.outputs);
  EXPECT_NE(form.definitions_after.action.outputs, form.macros_after.action.outputs);
}

TEST(SplitPassTest, WhatFollowsThePreambleIsNoPartOfIt) {
  const Step kept = SplitPass(OnePass(kText), 0)->forms[0].kept;
  EXPECT_THAT(Paths(kept), UnorderedElementsAre(kUnit, "kernix-macros/cuda_runtime.h", "kernix-preamble/poison.h"));
  const auto digest = [](const Step& step) { return exec::DigestOfAction(step.action, {}).hash; };
  EXPECT_EQ(digest(kept), digest(SplitPass(OnePass("#include <a.h>\nint y;\n"), 0)->forms[0].kept));
  EXPECT_NE(digest(kept), digest(SplitPass(OnePass("#include <b.h>\nint x;\n"), 0)->forms[0].kept));
}

// HeaderWith() writes the header.
TEST(SplitPassTest, ValuesOfMacrosMatterOnlyToAPreambleThatUsesThem) {
  const auto split = [](const std::vector<std::string>& definitions) {
    Phases phases = OnePass(kText);
    phases.preprocess[0].action.inputs[2] =
        exec::MakeInput("kernix-macros/cuda_runtime.h", language::HeaderWith(definitions, language::kRuntimeHeader));
    return SplitPass(phases, 0)->forms;
  };
  const auto digest = [](const PreambleForm& form) { return exec::DigestOfAction(form.kept.action, {}).hash; };
  const std::vector<PreambleForm> one = split({"#define N 1", "#define F(x) x", "#undef M"});
  const std::vector<PreambleForm> two = split({"#define N 2", "#define F(x) y", "#undef M"});
  ASSERT_EQ(one.size(), 2);
  ASSERT_EQ(two.size(), 2);
  EXPECT_EQ(digest(one[0]), digest(two[0]));
  EXPECT_NE(digest(one[1]), digest(two[1]));
  EXPECT_NE(digest(one[0]), digest(split({"#define N 1", "#define F(x) x"})[0]));
  EXPECT_EQ(one[0].definitions, "#define N 1\n#define F(x) x\n#undef M\n");
  EXPECT_EQ(one[1].definitions, "");
  EXPECT_EQ(InputOf(one[0].macros_after, "kernix-preamble/poison.h"),
            "#pragma GCC poison N\n#pragma GCC poison F\n#pragma GCC poison M\n#pragma GCC poison poison\n");
  EXPECT_EQ(InputOf(one[1].macros_after, "kernix-preamble/poison.h"), "#pragma GCC poison poison\n");
  const std::string header = InputOf(one[0].macros_after, "kernix-macros/cuda_runtime.h");
  EXPECT_THAT(header, AllOf(HasSubstr("#include_next"), Not(HasSubstr("#define N"))));
  const std::string with_values = InputOf(one[1].macros_after, "kernix-macros/cuda_runtime.h");
  EXPECT_EQ(std::count(header.begin(), header.end(), '\n'),
            std::count(with_values.begin(), with_values.end(), '\n') + 1);
  EXPECT_EQ(split({"#define N 1 \\\n 2"}).size(), 1);
}

TEST(SplitPassTest, AUnitOrACommandOfAnotherFormHasNone) {
  EXPECT_FALSE(SplitPass(OnePass("int x;\n"), 0).has_value());
  EXPECT_FALSE(SplitPass(OnePass("#include <a.h>\nint x = __COUNTER__;\n"), 0).has_value());
  EXPECT_FALSE(SplitPass(OnePass("#include <a.h>\n#pragma pop_macro(\"N\")\nint x;\n"), 0).has_value());
  Phases phases = OnePass(kText);
  phases.preprocess[0].action.argv[3] = "-imacros";
  EXPECT_FALSE(SplitPass(phases, 0).has_value());
  phases = OnePass(kText);
  phases.preprocess[0].action.argv.insert(phases.preprocess[0].action.argv.end(), {"-include", "own.h"});
  EXPECT_FALSE(SplitPass(phases, 0).has_value());
  phases = OnePass(kText);
  phases.unit = "another.cu";
  EXPECT_FALSE(SplitPass(phases, 0).has_value());
}

TEST(SplitPassTest, MacrosLeadFromOneListToTheOther) {
  const std::string before = "#define SAME 1\n#define GONE 2\n#define NEW(a) a\n";
  const std::string after = "#define F(x) x\n#define G\n#define H\n#define NEW(a) (a)\n#define SAME 1\n";
  const std::string definitions =
      "# 1 \"/usr/include/a.h\" 1 3 4\n#define F(x) x\n#undef GONE\n#undef NEW\n"
      "# 1 \"inc/0/b.h\" 1\nint x;\n#define NEW(a) (a)\n"
      "# 7 \"/usr/include/a.h\" 2 3 4\n#define G\n#undef G\n# 1 \"c\" 3\n#define H\n"
      "# 7 \"u/unit.cu\" 2\nconst char* s = R\"(\n#define RAW\n)\";\n";  // the text of a raw string is none
  EXPECT_EQ(MacrosToAdd(before, after, definitions, true),
            "#pragma GCC system_header\n;\n#undef GONE\n#undef NEW\n"
            "# 1 \"kernix-preamble/macros.h\" 3 4\n#define F(x) x\n#define G\n"
            "# 1 \"kernix-preamble/macros.h\" 3\n#define H\n"
            "# 1 \"kernix-preamble/macros.h\"\n#define NEW(a) (a)\n#pragma GCC poison pop_macro\n");
  const std::string of_users = MacrosToAdd(before, after, definitions, false).value_or("");
  EXPECT_THAT(of_users, AllOf(StartsWith("#pragma GCC system_header\n#undef"), EndsWith("pop_macro\n;\n")));
  // A macro of no known place, and one of a marker that is none.
  EXPECT_EQ(MacrosToAdd(before, after + "#define OTHER\n", definitions, true), std::nullopt);
  EXPECT_EQ(MacrosToAdd(before, "#define F(x) x\n", "# include \"a\" b\n#define F(x) x\n", true), std::nullopt);
}

// As g++ writes them.
constexpr char kWhole[] = "# 0 \"u/unit.cu\"\n# 1 \"inc/0/a.h\" 1\nint a;\n# 2 \"u/unit.cu\" 2\n\nint x;\n";
constexpr char kAlone[] = "# 0 \"u/unit.cu\"\n# 1 \"inc/0/a.h\" 1\nint a;\n# 2 \"u/unit.cu\" 2\n;\n";
std::string Made(const std::string& text, const std::string& counter = "0") {
  return StrCat("# 0 \"u/unit.cu\"\n# 1 \"u/unit.cu\"\n# 2 \"u/unit.cu\"\n", text,
                "# 1 \"kernix: the unit ends here\"\n", counter, "\n");
}

TEST(SplitPassTest, TheTextsJoin) {
  const PreamblePass pass = *SplitPass(OnePass(kText), 0);
  const std::string made = Made("\nint x;\n");
  const std::optional<std::string_view> rest = RestText(pass, made);
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(*rest, "\nint x;\n");
  const std::optional<std::string_view> text = PreambleText(pass, kAlone);
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(StrCat(*text, *rest), kWhole);
  EXPECT_EQ(RestText(pass, Made("")), "");
  // A counter that goes on, and what is cut off.
  EXPECT_EQ(RestText(pass, Made("int x0;\n", "1")), std::nullopt);
  EXPECT_EQ(RestText(pass, "int x;\n"), std::nullopt);
  EXPECT_EQ(RestText(pass, made.substr(0, made.size() - 2)), std::nullopt);
  // Not the end of the preamble.
  EXPECT_EQ(PreambleText(pass, kWhole), std::nullopt);
  EXPECT_EQ(PreambleText(pass, "# 0 \"u/unit.cu\"\n# 1 \"inc/0/a.h\" 1\nint a;\n# 3 \"u/unit.cu\" 2\n;\n"),
            std::nullopt);
}

TEST(SplitPassTest, KnowsWhetherItsLastTokenIsOfTheSystem) {
  EXPECT_TRUE(EndsInSystemHeader("# 1 \"a.h\" 1 3 4\nint a;\n# 2 \"u.cu\" 2\n"));
  EXPECT_TRUE(EndsInSystemHeader("int b;\n# 1 \"a.h\" 1 3\nint a;\n\n# 2 \"b.h\" 2\n \n"));
  EXPECT_FALSE(EndsInSystemHeader("# 1 \"a.h\" 1 3\nint a;\n# 2 \"b.h\" 2\nint b;\n# 2 \"u.cu\" 2\n"));
  EXPECT_FALSE(EndsInSystemHeader(""));
}

}  // namespace
}  // namespace kernix::build
