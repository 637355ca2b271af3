// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/preamble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "daemon/exec/action_digest.h"
#include "daemon/language/write/translation_unit.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kUnit[] = "u/unit.cu";

Phases OnePass(const std::string& text) {
  Step step;
  step.action.argv = {"g++", "-E",   "-Iinc/0", "-include", "cuda_runtime.h", kUnit,
                      "-o",  "a.ii", "-MD",     "-MF",      "a.ii.d"};
  step.action.inputs = {exec::MakeInput(kUnit, text), exec::MakeInput("kernel.cu", text),
                        exec::MakeInput("kernix-macros/cuda_runtime.h", "text")};
  step.action.outputs = {"a.ii", "a.ii.d"};
  Phases phases;
  phases.preprocess = {step};
  phases.unit = kUnit;
  return phases;
}

std::string UnitOf(const Step& step) { return *step.action.inputs[0].content; }

std::vector<std::string> Paths(const Step& step) {
  std::vector<std::string> paths;
  for (const exec::InputFile& input : step.action.inputs) paths.push_back(input.path);
  return paths;
}

constexpr char kText[] = "#include <a.h>\nint x;\n";

TEST(PreambleTest, TheUnitIsMarkedWhereThePreambleEnds) {
  const std::optional<PreamblePass> split = SplitPass(OnePass(kText), 0);
  ASSERT_TRUE(split.has_value());
  EXPECT_THAT(UnitOf(split->whole),
              AllOf(StartsWith("#include <a.h>\nstatic_assert("), EndsWith(");\n#line 2 \"u/unit.cu\"\nint x;\n")));
  EXPECT_THAT(UnitOf(split->rest), AllOf(StartsWith("static_assert("), HasSubstr("#line 2 \"u/unit.cu\"\nint x;\n"),
                                         EndsWith("\n__COUNTER__\n")));
  EXPECT_THAT(split->rest.action.argv, AllOf(Not(Contains("-include")), Contains(kPreambleMacros)));
  EXPECT_EQ(UnitOf(split->forms[0].macros_after), "#include <a.h>\n");
  EXPECT_EQ(UnitOf(split->macros_before), "");
  EXPECT_THAT(split->forms[0].macros_after.action.argv,
              AllOf(Contains("-include"), Contains("-dD"), Not(Contains("a.ii"))));
  EXPECT_THAT(split->macros_before.action.argv, AllOf(Not(Contains("-include")), Contains("-dD")));
  EXPECT_NE(split->macros_before.action.outputs, split->forms[0].macros_after.action.outputs);
}

TEST(PreambleTest, WhatFollowsThePreambleIsNoPartOfIt) {
  const Step kept = SplitPass(OnePass(kText), 0)->forms[0].kept;
  EXPECT_THAT(Paths(kept), ElementsAre(kUnit, "kernix-macros/cuda_runtime.h"));
  const auto digest = [](const Step& step) { return exec::DigestOfAction(step.action, {}).hash; };
  EXPECT_EQ(digest(kept), digest(SplitPass(OnePass("#include <a.h>\nint y;\n"), 0)->forms[0].kept));
  EXPECT_NE(digest(kept), digest(SplitPass(OnePass("#include <b.h>\nint x;\n"), 0)->forms[0].kept));
}

// RuntimeHeaderWith() writes the header.
TEST(PreambleTest, ValuesOfMacrosMatterOnlyToAPreambleThatUsesThem) {
  const auto split = [](const std::vector<std::string>& definitions) {
    Phases phases = OnePass(kText);
    phases.preprocess[0].action.inputs[2] =
        exec::MakeInput("kernix-macros/cuda_runtime.h", language::RuntimeHeaderWith(definitions));
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
  const std::string poisoned = *one[0].macros_after.action.inputs.back().content;
  EXPECT_THAT(poisoned, AllOf(HasSubstr("#pragma GCC poison N\n#pragma GCC poison F\n#pragma GCC poison M\n"),
                              HasSubstr("#include_next"), Not(HasSubstr("#define N"))));
  EXPECT_EQ(split({"#define N 1 \\\n 2"}).size(), 1);
}

TEST(PreambleTest, AUnitOrACommandOfAnotherFormHasNone) {
  EXPECT_FALSE(SplitPass(OnePass("int x;\n"), 0).has_value());
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

TEST(PreambleTest, MacrosLeadFromOneTextToTheOther) {
  EXPECT_EQ(MacrosToAdd("# 0 \"<built-in>\"\n#define SAME 1\n#define GONE 2\n#define NEW(a) a\n",
                        "# 0 \"<built-in>\"\n#define SAME 1\n#define GONE 2\n#define NEW(a) a\n"
                        "# 1 \"/usr/include/a.h\" 1 3 4\n#define F(x) x\n#undef GONE\n#undef NEW\n#define ONCE\n"
                        "# 1 \"inc/0/b.h\" 1\nint x;\n#define NEW(a) (a)\n#undef ONCE\n"
                        "# 7 \"/usr/include/a.h\" 2 3 4\n#define G\n# 1 \"c\" 3\n#define H\n"),
            "#pragma GCC system_header\n#undef GONE\n#undef NEW\n"
            "# 1 \"kernix-preamble/macros.h\" 3 4\n#define F(x) x\n#define G\n"
            "# 1 \"kernix-preamble/macros.h\" 3\n#define H\n"
            "# 1 \"kernix-preamble/macros.h\"\n#define NEW(a) (a)\n");
}

// As g++ writes them.
constexpr char kWhole[] =
    "# 0 \"u/unit.cu\"\n# 1 \"inc/0/a.h\" 1\nint a;\n# 2 \"u/unit.cu\" 2\n"
    "static_assert(true, \"kernix: the unit's first #includes end here\");\n# 2 \"u/unit.cu\"\nint x;\n";
std::string Rest(const std::string& text, const std::string& counter = "0") {
  return StrCat("# 0 \"u/unit.cu\"\n# 1 \"/usr/include/stdc-predef.h\" 1 3 4\n# 1 \"u/unit.cu\"\n",
                "static_assert(true, \"kernix: the unit's first #includes end here\");\n# 2 \"u/unit.cu\"\n", text,
                "# 1 \"kernix: the unit ends here\"\n", counter, "\n");
}

TEST(PreambleTest, TheTextsJoin) {
  const std::optional<std::string_view> preamble = PreambleText(kWhole);
  ASSERT_TRUE(preamble.has_value());
  const std::string rest = Rest("int x;\n");
  EXPECT_EQ(StrCat(*preamble, RestText(rest).value_or("")), kWhole);
  // A counter that goes on, and what is cut off.
  EXPECT_EQ(RestText(Rest("int x0;\n", "1")), std::nullopt);
  EXPECT_EQ(RestText("int x;\n"), std::nullopt);
  EXPECT_EQ(RestText(rest.substr(0, rest.size() - 2)), std::nullopt);
  EXPECT_EQ(PreambleText("int x;\n"), std::nullopt);
}

}  // namespace
}  // namespace kernix::build
