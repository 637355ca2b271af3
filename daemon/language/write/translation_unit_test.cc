// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/write/translation_unit.h"

#include <algorithm>

#include "daemon/language/spec/function_spec.h"
#include "kernix/v1/kernix.pb.h"
#include "tests/support/test_util.h"

namespace kernix::language {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

FunctionSpec Function() {
  return {"f",
          {{ParameterKind::kResult, "", {}},
           {ParameterKind::kAttribute, "alpha", AttributeType::kFloat32},
           {ParameterKind::kArgument, "", {}},
           {ParameterKind::kAttribute, "bits", AttributeType::kBFloat16},
           {ParameterKind::kStream, "", {}}}};
}

std::string Generated(const std::string& label, const std::string& text) {
  return GenerateTranslationUnit(v1::LANGUAGE_CPP, {{label, text}}, {Function()}, true, false).Text();
}

TEST(TranslationUnitTest, PassesParametersInTheOrderOfTheFunction) {
  EXPECT_THAT(Generated("k.cpp", "x"),
              HasSubstr("f(kernix_call.results.tensors[0], static_cast<float>(kernix_call.attributes[0].real), "
                        "kernix_call.arguments.tensors[0], static_cast<uint16_t>(kernix_call.attributes[1].integer), "
                        "kernix_call.stream);"));
}

TEST(TranslationUnitTest, LabelsEverySource) {
  const std::string unit =
      GenerateTranslationUnit(v1::LANGUAGE_CUDA, {{"a.cu", "int a;"}, {"b.cu", "int b;"}}, {Function()}, true, false)
          .Text();
  EXPECT_THAT(unit, HasSubstr("#line 1 \"kernix-source/a.cu\"\nint a;\n"));
  EXPECT_THAT(unit, HasSubstr("#line 1 \"kernix-source/b.cu\"\nint b;\n"));
  EXPECT_THAT(unit, HasSubstr("#line 1 \"<handler of f>\"\n"));
}

TEST(TranslationUnitTest, DefinitionsOfFlagsComeBeforeAllElse) {
  const std::vector<std::string> definitions = {"#define X 1", "#undef Y"};
  const std::string unit = GenerateTranslationUnit(v1::LANGUAGE_CPP, {{"a.cpp", "std::vector<int> a;"}}, {Function()},
                                                   true, false, definitions)
                               .Text();
  const size_t at = unit.find(
      "#line 1 \"<command-line>\"\n#define X 1\n#ifdef X\n#endif\n#line 2 \"<command-line>\"\n#undef Y\n"
      "#line 1 \"<kernix>\"\n");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(at, unit.find("#include"));
  EXPECT_THAT(HeaderWith(definitions, kRuntimeHeader), HasSubstr("#undef Y\n#endif\n"));
  EXPECT_THAT(HeaderWith(definitions, kRuntimeHeader), EndsWith("#include_next <cuda_runtime.h>\n"));
}

TEST(TranslationUnitTest, QuotesLabels) {
  EXPECT_THAT(Generated("a\"b\\c\nd", "x"), HasSubstr("#line 1 \"kernix-source/a\\\"b\\\\c d\"\n"));
}

TEST(TranslationUnitTest, KeepsSourcesApartFromWhatFollows) {
  EXPECT_THAT(Generated("k", "\xef\xbb\xbfint a; \\"), HasSubstr("#line 1 \"kernix-source/k\"\nint a; \\\n\n#line"));
}

TEST(TranslationUnitTest, OnlyCudaNeedsAStream) {
  EXPECT_THAT(Generated("k", "x"), HasSubstr("kNullableStream"));
  EXPECT_THAT(GenerateTranslationUnit(v1::LANGUAGE_CUDA, {{"k", "x"}}, {Function()}, true, false).Text(),
              HasSubstr("kRequiredStream"));
}

TEST(TranslationUnitTest, IsTheSameEveryTime) {
  EXPECT_EQ(Generated("k", "std::vector<std::string> x;"), Generated("k", "std::vector<std::string> x;"));
}

TEST(KernelHeadersTest, AreAllThere) {
  std::vector<std::string> paths;
  for (const GeneratedFile& file : KernelHeaders()) {
    paths.push_back(file.path);
    EXPECT_THAT(file.text, testing::StartsWith("// SPDX-License-Identifier: Apache-2.0\n")) << file.path;
    EXPECT_THAT(file.text, testing::EndsWith("\n")) << file.path;
    EXPECT_TRUE(std::all_of(file.text.begin(), file.text.end(), [](char c) { return c > 0; })) << file.path;  // ASCII
    EXPECT_THAT(file.text, Not(HasSubstr("kernix(")));  // what the embedding quotes with
  }
  for (const char* path : {"brainevent/common.h", "brainevent/tensor.h", "brainevent/dtypes.h", "brainevent/check.h",
                           "brainevent/dispatch.h", "brainevent/ffi_compat.h", "brainevent/internal/handler.h"}) {
    EXPECT_THAT(paths, testing::Contains(path));
  }
}

}  // namespace
}  // namespace kernix::language
