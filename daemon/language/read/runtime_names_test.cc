// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/runtime_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/strings.h"
#include "tests/support/runtime_parts.h"
#include "tests/support/test_util.h"

namespace kernix::language {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kBase[] =
    "#define __DEVICE_FUNCTIONS_H__\nstruct dim3 { unsigned x, y, z; };\nvoid __syncthreads();\n"
    "int abs(int value);\nnamespace std { typedef unsigned long size_t; using ::abs; }\n";

// A runtime header: what the stand-in has, a part for maths, one for atomics, and the rest.
std::string Full() {
  return StrCat("# 1 \"cuda_runtime.h\"\n#define __CUDA_RUNTIME_H__\n# 1 \"base.h\" 1\n", kBase,
                "# 2 \"cuda_runtime.h\" 2\n# 1 \"maths.h\" 1\n#define __MATH_FUNCTIONS_H__\n#define M_PI 3.14\n"
                "float sqrtf(float);\n__attribute__((device)) int abs(int value);\n"
                "namespace std { float abs(float value); bool isnan(float value); }\nusing std::isnan;\n"
                "# 1 \"specfun.h\" 1\n#define _GLIBCXX_BITS_SPECFUN_H\n"
                "namespace std { double beta(double a); template <typename T> T max(T a, T b); class pair; "
                "bool operator==(pair a, pair b); class initializer_list; class type_info; class strong_ordering; }\n"
                "# 9 \"maths.h\" 2\n# 2 \"cuda_runtime.h\" 2\n"
                "# 1 \"atomics.h\" 1\n#define __DEVICE_ATOMIC_FUNCTIONS_H__\nint atomicAdd(int* to, int by);\n"
                "# 3 \"cuda_runtime.h\" 2\n"
                "template <typename T> int cudaFuncGetAttributes(int* to, T* function);\n"
                "# 1 \"probe.cu\"\nint kernix_counter = 0;\n");
}

std::string Slim(std::string_view more = "") {
  return StrCat("#define __CUDA_RUNTIME_H__\n", kBase, more, "int kernix_counter = 0;\n");
}

RuntimeNames Names() {
  const auto names = RuntimeNames::Read({{Full(), Slim()}}, {}, {"#ifdef SOME_SWITCH\nint text;\n#endif\n"});
  EXPECT_THAT(names, IsOk());
  return *names;
}

// The guess for a source.
std::string Guess(std::string_view text) { return Said(ChooseRuntime(Names(), {{{text}}, {}, {}})); }

std::optional<UnitText::Kind> KindOf(std::string_view file) {
  if (file == "k.cu") return UnitText::Kind::kUser;
  if (file == "vector") return UnitText::Kind::kLibrary;
  return std::nullopt;
}

// The decision for a source, and what the preprocessor makes of it.
std::string Decide(std::string_view written, std::string_view preprocessed) {
  return Said(ChooseRuntime(Names(), {{{written}}, {preprocessed}, KindOf}));
}

TEST(RuntimeNamesTest, ASourceThatNamesNothingElseTakesNothing) {
  EXPECT_EQ(Guess("__global__ void f(float* x) { dim3 d; __syncthreads(); x[threadIdx.x] = d.x; }"), "");
  EXPECT_EQ(Guess("std::size_t n; struct A { int max, sqrtf; }; "), "maths");
}

TEST(RuntimeNamesTest, PartsJoinByName) {
  EXPECT_EQ(Guess("y = sqrtf(x);"), "maths");
  EXPECT_EQ(Guess("y = atomicAdd(p, static_cast<int>(sqrtf(x)));"), "maths, atomics");
  EXPECT_EQ(Guess("y = ::sqrtf(x) * M_PI;"), "maths");
  EXPECT_EQ(Guess("#ifdef M_PI\n#endif"), "maths");
  EXPECT_EQ(Guess("sqr\\\ntf(1);"), "maths");
}

// The stand-in has an abs() of its own, which takes an int: another one would be called.
TEST(RuntimeNamesTest, AnOverloadThatIsMissingCountsLikeANameThatIsMissing) {
  EXPECT_EQ(Guess("y = abs(x);"), "maths");
  EXPECT_EQ(Guess("y = std::abs(x);"), "maths");
}

TEST(RuntimeNamesTest, MembersAndNamesOfOtherNamespacesAreOthers) {
  EXPECT_EQ(Guess("y = a.sqrtf(1) + b->atomicAdd + mine::sqrtf(2);"), "");
  EXPECT_EQ(Guess("y = a[1]->sqrtf(1) + this->sqrtf(2);"), "");
  for (const char* text :
       {"auto f() -> sqrtf;", "auto f() const -> sqrtf;", "return ::sqrtf(x);", "y = x > ::sqrtf(x);",
        "y = x>::sqrtf(x);", "y = f(x) - ::sqrtf(x);", "__inline__ ::sqrtf f();"}) {
    EXPECT_EQ(Guess(text), "maths") << text;
  }
  EXPECT_EQ(Guess("y = std :: isnan(x);"), "maths");
  EXPECT_EQ(Guess("// sqrtf\nconst char* s = \"sqrtf\"; /* atomicAdd */"), "");
}

TEST(RuntimeNamesTest, WhatIsInNoPartTakesTheWholeHeader) {
  EXPECT_EQ(Guess("\ny = std::beta(1);"), "full");
  EXPECT_EQ(Guess("std::pair p;"), "full");
  EXPECT_EQ(Guess("#if defined(_GLIBCXX_BITS_SPECFUN_H)\n#endif"), "full");
}

// A name of std by itself is std's only if somebody can say so: by a using-directive, or by the type of an argument.
TEST(RuntimeNamesTest, NamesOfStdCountWhereTheyCanBeFound) {
  EXPECT_EQ(Guess("y = max(a, b);"), "");
  EXPECT_EQ(Guess("int max = 3;"), "");
  EXPECT_EQ(Guess("std::size_t n; y = max(n, n);"), "full");
  EXPECT_EQ(Guess("std::size_t n; int max = 3;"), "");
  EXPECT_EQ(Guess("using namespace std; y = max;"), "full");
  EXPECT_EQ(Guess("namespace s = std; s::max(1, 2); pair p;"), "full");
  const UnitText ours = {"std::size_t n; y = max(n, n);", UnitText::Kind::kKernix};
  EXPECT_EQ(Said(ChooseRuntime(Names(), {{ours}, {}, {}})), "");
}

TEST(RuntimeNamesTest, LanguageFeaturesMayUseTheLibraryWithoutItsName) {
  EXPECT_EQ(Guess("bool b = typeid(x) == typeid(y);"), "full");
  EXPECT_EQ(Guess("auto operator<=>(const A&) const = default;"), "full");
  EXPECT_EQ(Guess("for (const float by : {1.0f, 2.0f}) sum += by;"), "full");
  EXPECT_EQ(Guess("auto list = {1, 2};"), "full");
  EXPECT_EQ(Guess("switch (i) { case 1: { } } int a[] = {1, 2}; for (int i : a) { }"), "");
}

TEST(RuntimeNamesTest, TrigraphsMayHideNames) { EXPECT_EQ(Guess("sqr?\?/\ntf(1);"), "full"); }

TEST(RuntimeNamesTest, TheHeadersOfKernixCallTheFunctionsOfTheApi) {
  const std::string text = "cudaFuncGetAttributes(&now, function);";
  EXPECT_EQ(Guess(text), "templates");
  const UnitText ours = {text, UnitText::Kind::kKernix};
  EXPECT_EQ(Said(ChooseRuntime(Names(), {{ours}, {}, {}})), "");
}

// A library's header includes what it uses. What CUDA declares again, it has only with that part.
TEST(RuntimeNamesTest, AHeaderOfALibraryTakesWhatCudaDeclaresAgain) {
  const auto take = [](std::string_view text) {
    return Said(ChooseRuntime(Names(), {{{text, UnitText::Kind::kLibrary}}, {}, {}}));
  };
  EXPECT_EQ(take("namespace std { pair p; inline int f(int x) { return max(x, 2); } }"), "");
  EXPECT_EQ(take("namespace std { inline int f(int x) { return ::abs(x); } }"), "maths");
}

TEST(RuntimeNamesTest, APreprocessedUnitTellsWhatMacrosHaveMade) {
  const std::string pastes = "#define CALL(name) name##f(x)\n";
  EXPECT_EQ(Decide(StrCat(pastes, "y = CALL(sqrt);"), "# 1 \"k.cu\"\ny = sqrtf(x);\n"), "maths");
  EXPECT_EQ(Decide(StrCat(pastes, "y = CALL(mine);"), "# 1 \"k.cu\"\ny = minef(x);\n"), "");
  EXPECT_EQ(Decide("#define J(a, b) a##b\ny = J(M_, PI);", "# 1 \"k.cu\"\ny = M_PI;\n"), "maths");
}

TEST(RuntimeNamesTest, APreprocessedUnitLeavesOutWhatIsNotCompiled) {
  EXPECT_EQ(Decide("#if 0\nstd::beta(1);\n#endif\nint x;", "# 1 \"k.cu\"\nint x;\n"), "");
  EXPECT_EQ(Decide("#ifdef M_PI\nint x;\n#endif", "# 1 \"k.cu\"\n"), "maths");
}

TEST(RuntimeNamesTest, OnlyTheUnitsOwnPiecesOfAPreprocessedTextCount) {
  EXPECT_EQ(
      Decide("int x;", "# 1 \"slim.h\" 1\nfloat sqrtf(float);\n# 1 \"k.cu\" 2\nint x;\n# 1 \"slim.h\" 1\nabs(1);\n"),
      "");
  EXPECT_EQ(Decide("int x;", "# 1 \"vector\" 1 3\nnamespace std { pair p; }\n# 1 \"k.cu\" 2\natomicAdd(p, 1);\n"),
            "atomics");
  EXPECT_EQ(Decide("int x;", "# 1 \"k.cu\"\nauto s = R\"(\n# 1 \"slim.h\"\n)\"; std::beta(1);\n"), "full");
}

// In a condition nobody sees the name that was made.
TEST(RuntimeNamesTest, AConditionOnAMadeNameTakesTheWholeHeader) {
  const std::string output = "# 1 \"k.cu\"\nint x;\n";
  EXPECT_EQ(Decide("#define J(a, b) a##b\n#define T J\n#if T(M_, PI)\n#endif\nint x;", output), "full");
  EXPECT_EQ(Decide("#define HAS(x) MINE_##x\n#if HAS(MATHS)\n#endif\nint x;", output), "full");
  EXPECT_EQ(Decide("#define LOG(text, ...) log(text, ## __VA_ARGS__)\n#if LOG(1)\n#endif\nint x;", output), "");
  EXPECT_EQ(Decide("#define J(a, b) a##b\nint J(x, );", output), "");
}

TEST(RuntimeNamesTest, NamesOfEachPassCount) {
  const std::string device = StrCat(Full(), "void __nanosleep(int);\n");
  const auto names = RuntimeNames::Read({{Full(), Slim()}, {device, Slim()}}, {}, {});
  ASSERT_THAT(names, IsOk());
  EXPECT_NE(names->Find("__nanosleep").global, 0u);
  EXPECT_NE(names->Find("sqrtf").global, 0u);
}

TEST(RuntimeNamesTest, WhatTheStandInHasBesidesTakesTheWholeHeader) {
  const auto names = RuntimeNames::Read({{Full(), Slim("void extra();\n#define EXTRA\n")}}, {}, {});
  ASSERT_THAT(names, IsOk());
  EXPECT_EQ(names->Find("extra").global, RuntimeNames::kWhole);
  EXPECT_EQ(names->Find("EXTRA").macro, RuntimeNames::kWhole);
}

TEST(RuntimeNamesTest, APartThatIsThereIsNotAskedForAgain) {
  const std::string slim = Slim("#define __DEVICE_ATOMIC_FUNCTIONS_H__\n");  // without atomicAdd()
  const auto names = RuntimeNames::Read({{Full(), slim}}, RuntimePart::kAtomics, {});
  ASSERT_THAT(names, IsOk());
  EXPECT_EQ(names->Find("atomicAdd").global, RuntimeNames::kWhole);
}

TEST(RuntimeNamesTest, TheStandInsOwnFunctionsTakeParts) {
  const std::string body = "inline float root(float x) { return sqrtf(x); }\n";
  const auto names = RuntimeNames::Read({{StrCat(Full(), body), Slim(body)}}, {}, {});
  ASSERT_THAT(names, IsOk());
  EXPECT_EQ(names->needed(), RuntimeParts(RuntimePart::kMaths));
  EXPECT_EQ(Said(ChooseRuntime(*names, {{{"int x;"}}, {}, {}})), "maths");
}

TEST(RuntimeNamesTest, WhatNamesCannotTellIsAnError) {
  const auto read = [](const std::string& full, const std::string& slim) {
    return std::string(RuntimeNames::Read({{full, slim}}, {}, {}).status().message());
  };
  EXPECT_THAT(read(Full(), Slim()), IsEmpty());
  EXPECT_THAT(read("int kernix_counter = 0;", Slim()), HasSubstr("not the texts of a CUDA runtime header"));
  EXPECT_THAT(read(StrCat(Full(), "using namespace std;\n"), Slim()), HasSubstr("using-directive"));
  EXPECT_THAT(read(StrCat(Full(), "bool operator!(dim3 a);\n"), Slim()), HasSubstr("an operator on"));
}

// The headers of one have counted further with __COUNTER__ than those of the other.
TEST(RuntimeNamesTest, TheCounterCountsIfTheHeadersUseIt) {
  EXPECT_EQ(Names().Find("__COUNTER__"), RuntimeNames::Takes{});
  std::string slim = Slim();
  slim.replace(slim.find("counter = 0"), 11, "counter = 1");
  const auto names = RuntimeNames::Read({{Full(), slim}}, {}, {});
  ASSERT_THAT(names, IsOk());
  EXPECT_EQ(names->Find("__COUNTER__").macro, RuntimeNames::kWhole);
}

TEST(RuntimeNamesTest, MacrosThatTheHeadersAskForMayChangeThem) {
  const RuntimeNames names = Names();
  for (const char* macro : {"SOME_SWITCH", "sqrtf", "M_PI", "value", "T"}) {
    EXPECT_TRUE(names.MayChangeHeaders(macro)) << macro;
  }
  for (const char* macro : {"BLOCK_SIZE", "text", "kWidth"}) EXPECT_FALSE(names.MayChangeHeaders(macro)) << macro;
}

TEST(RuntimeNamesTest, NamesGoIntoAStoreAndComeBack) {
  const RuntimeNames names = Names();
  const std::string text = names.ToText();
  const auto back = RuntimeNames::FromText(text);
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(*back, names);
  EXPECT_FALSE(RuntimeNames::FromText("").ok());
  EXPECT_FALSE(RuntimeNames::FromText(text.substr(text.find('\n'))).ok());
  EXPECT_FALSE(RuntimeNames::FromText(text + "x").ok());
  EXPECT_FALSE(RuntimeNames::FromText(text + "99999999999\n").ok());
  EXPECT_FALSE(RuntimeNames::FromText(text.substr(0, text.find("sqrtf"))).ok());
}

}  // namespace

}  // namespace kernix::language
