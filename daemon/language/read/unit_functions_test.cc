// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/strings.h"
#include "daemon/language/read/resolve.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"
#include "tests/support/test_util.h"

namespace kernix::language {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Functions Annotated() {
  v1::Functions functions;
  functions.set_from_annotations(true);
  return functions;
}

v1::Functions Listed(const std::vector<std::string>& names) {
  v1::Functions functions;
  for (const std::string& name : names) functions.add_function()->set_name(name);
  return functions;
}

// The names that each source exports.
std::vector<std::vector<std::string>> Names(const std::vector<SourceText>& sources, const v1::Functions& functions) {
  const auto units = ResolveUnitFunctions(sources, functions);
  EXPECT_THAT(units, IsOk());
  std::vector<std::vector<std::string>> names;
  if (!units.ok()) return names;
  for (const std::vector<FunctionSpec>& unit : *units) {
    names.emplace_back();
    for (const FunctionSpec& function : unit) names.back().push_back(function.name);
  }
  return names;
}

std::string Message(const std::vector<SourceText>& sources, const v1::Functions& functions) {
  return std::string(ResolveUnitFunctions(sources, functions).status().message());
}

constexpr char kDeclareG[] = "void g(const BE::Tensor x, BE::Tensor y);\n";
constexpr char kDefineF[] = "void f(const BE::Tensor x, BE::Tensor y) { g(x, y); }\n";
constexpr char kDefineG[] = "void g(const BE::Tensor x, BE::Tensor y) noexcept {}\n";

TEST(UnitFunctionsTest, AHostFunctionIsMeantRatherThanAGlobalOne) {
  const SourceText global = {"a.cu", "__global__ void g(const float* x, float* y) {}\n"};
  EXPECT_THAT(Names({global, {"b.cu", kDefineG}}, Listed({"g"})), ElementsAre(ElementsAre(), ElementsAre("g")));
  EXPECT_THAT(Names({global, {"b.cu", kDefineF}}, Listed({"g"})), ElementsAre(ElementsAre("g"), ElementsAre()));
}

TEST(UnitFunctionsTest, AnAnnotationBelongsToItsSource) {
  EXPECT_THAT(Names({{"a.cu", std::string("// @BE f\n") + kDefineF},
                     {"helper.cu", "int helper() { return 1; }\n"},
                     {"b.cu", std::string("// @BE g\n") + kDefineG}},
                    Annotated()),
              ElementsAre(ElementsAre("f"), ElementsAre(), ElementsAre("g")));
}

TEST(UnitFunctionsTest, AListedFunctionBelongsToTheSourceThatDefinesIt) {
  const std::vector<SourceText> sources = {{"a.cu", std::string(kDeclareG) + kDefineF}, {"b.cu", kDefineG}};
  EXPECT_THAT(Names(sources, Listed({"g", "f"})), ElementsAre(ElementsAre("f"), ElementsAre("g")));
}

// C++ takes both for the same function.
TEST(UnitFunctionsTest, OnlyTheSourceThatDefinesAFunctionSaysWhatIsConst) {
  const SourceText declares = {"a.cu", StrCat("void g(BE::Tensor x, BE::Tensor y);\n", kDefineF)};
  EXPECT_THAT(Names({declares, {"b.cu", kDefineG}}, Listed({"g"})), ElementsAre(ElementsAre(), ElementsAre("g")));
}

// The text of the definition is not available, so the source that names the function exports it.
TEST(UnitFunctionsTest, AFunctionThatAMacroOfAHeaderMakes) {
  v1::Functions functions = Listed({"made"});
  functions.mutable_function(0)->add_tokens("ret");
  EXPECT_THAT(Names({{"a.cu", "int x;\n"}, {"b.cu", "#include \"m.h\"\nMAKE(made)\n"}}, functions),
              ElementsAre(ElementsAre(), ElementsAre("made")));
}

TEST(UnitFunctionsTest, ASecondExportIsRefusedWithBothPlaces) {
  const std::string annotated = std::string("\n// @BE g\n") + kDefineG;
  EXPECT_THAT(Message({{"a.cu", annotated}, {"b.cu", annotated}}, Annotated()),
              AllOf(HasSubstr("b.cu:2"), HasSubstr("a.cu:2"), HasSubstr("'g' is exported twice")));
  EXPECT_THAT(Message({{"a.cu", kDefineG}, {"b.cu", kDefineG}}, Listed({"g"})),
              AllOf(HasSubstr("a.cu:1"), HasSubstr("b.cu:1"), HasSubstr("several sources")));
  EXPECT_THAT(Message({{"a.cu", annotated + "// @BE g\n"}, {"b.cu", ""}}, Annotated()), HasSubstr("exported twice"));
}

TEST(UnitFunctionsTest, OnlyTheFunctionThatIsMeantCounts) {
  const std::string parameters = "(const BE::Tensor x, BE::Tensor y)";
  EXPECT_THAT(Names({{"a.cu", "namespace p { void run" + parameters + " {} }\n"},
                     {"b.cu", "namespace q { void run" + parameters + " {} }\n"}},
                    Listed({"p::run", "q::run"})),
              ElementsAre(ElementsAre("p_run"), ElementsAre("q_run")));
  EXPECT_THAT(Names({{"a.cu", "void f" + parameters + " noexcept(true) {}\n"},
                     {"b.cu", "void f" + parameters + ";\nstruct S { void f(int) {} };\n"},
                     {"c.cu", "static void f(int) {}\n"}},
                    Listed({"f"})),
              ElementsAre(ElementsAre("f"), ElementsAre(), ElementsAre()));
}

TEST(UnitFunctionsTest, TwoNamesThatAreExportedAlikeAreRefused) {
  const std::string scoped = "namespace n {\n// @BE n::g\nvoid g(const BE::Tensor x, BE::Tensor y) {}\n}\n";
  const std::string plain = "// @BE n_g\nvoid n_g(const BE::Tensor x, BE::Tensor y) {}\n";
  EXPECT_THAT(Message({{"a.cu", scoped}, {"b.cu", plain}}, Annotated()),
              AllOf(HasSubstr("b.cu:1"), HasSubstr("a.cu:2"), HasSubstr("exported twice")));
  EXPECT_THAT(Message({{"a.cu", scoped}, {"b.cu", plain}}, Listed({"n::g", "n_g"})),
              AllOf(HasSubstr("'n_g'"), HasSubstr("'n::g'"), HasSubstr("exported twice")));
}

TEST(UnitFunctionsTest, WhatIsNowhereIsRefused) {
  EXPECT_THAT(Message({{"a.cu", "int x;"}, {"b.cu", "int y;"}}, Listed({"f"})),
              AllOf(HasSubstr("'f' is in none of the sources a.cu, b.cu")));
  EXPECT_THAT(Message({{"a.cu", "int x;"}, {"b.cu", "int y;"}}, Annotated()), HasSubstr("a.cu, b.cu: no '// @BE"));
}

// The resolver's errors about one source have that source's label and line.
TEST(UnitFunctionsTest, ErrorsNameTheUnit) {
  EXPECT_THAT(Message({{"a.cu", kDefineG}, {"b.cu", "\nvoid f(Other x, BE::Tensor y) {}\n"}}, Listed({"g", "f"})),
              HasSubstr("b.cu:2"));
}

}  // namespace
}  // namespace kernix::language
