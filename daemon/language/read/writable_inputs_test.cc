// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/writable_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"

namespace kernix::language {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Found(std::string_view body,
                               std::string_view parameters = "const BE::Tensor x, BE::Tensor y") {
  std::vector<std::string> found;
  for (const WritableInput& input : FindWritableInputs(StrCat("void f(", parameters, ") {\n", body, "\n}\n"))) {
    found.push_back(StrCat(input.name, ":", input.line));
  }
  return found;
}

TEST(FindWritableInputsTest, FindsAPointerThatIsNotConst) {
  for (const char* body : {"float* p = x.data_ptr<float>();", "int i = 0; float *p = x.data_ptr<float>();",
                           "float* p = static_cast<float*>(x.data_ptr());", "float* p = (float*)x.data_ptr();",
                           "float* __restrict__ p = x.data_ptr<float>();"}) {
    EXPECT_THAT(Found(body), ElementsAre("x:2")) << body;
  }
  EXPECT_THAT(Found("float* p = x.data_ptr<float>();", "const BE::Tensor& x"), ElementsAre("x:2"));
  EXPECT_THAT(Found("float* p = x.data_ptr<float>();", "BE::Tensor y, const Tensor x"), ElementsAre("x:2"));
}

TEST(FindWritableInputsTest, LeavesWhatIsNotCompiled) {
  EXPECT_THAT(Found("\n#if 0\nfloat* p = x.data_ptr<float>();\n#endif"), IsEmpty());
  EXPECT_THAT(Found("\n#ifdef N\nfloat* p = x.data_ptr<float>();\n#endif"), ElementsAre("x:4"));
}

TEST(FindWritableInputsTest, FindsAnElementThatIsWritten) {
  for (const char* body :
       {"x.data_ptr<float>()[0] = 1;", "x.data_ptr<float>()[a[i]] += 1;", "*x.data_ptr<float>() = 1;",
        "*x.data_ptr<float>() += 1;", "*(x.data_ptr<float>() + i) = v;"}) {
    EXPECT_THAT(Found(body), ElementsAre("x:2")) << body;
  }
}

TEST(FindWritableInputsTest, LeavesWhatOnlyReads) {
  for (const char* body : {"const float* p = x.data_ptr<float>();",
                           "auto p = x.data_ptr<float>();",
                           "auto* p = x.data_ptr<float>();",
                           "float* p = y.data_ptr<float>();",
                           "const float* p = static_cast<const float*>(x.data_ptr());",
                           "float v = x.data_ptr<float>()[0];",
                           "y.data_ptr<float>()[0] = x.data_ptr<float>()[0];",
                           "if (x.data_ptr<float>()[0] == 1) return;",
                           "float v = *x.data_ptr<float>();",
                           "if (*x.data_ptr<float>() == 1) return;",
                           "float v = *(x.data_ptr<float>() + i);",
                           "*(p + x.data_ptr<int>()[0]) = 1;",
                           "*(x.data_ptr<int>()[0] + p) = 1;",
                           "kernel<<<1, 1>>>(x.data_ptr<float>(), y.data_ptr<float>());",
                           "out[i * 2] = x.data_ptr<float>()[i];",
                           "*out = x.data_ptr<float>();",
                           "s.p[i * 2] = x.data_ptr<float>();",
                           "float* p = allocate(x.data_ptr<float>());",
                           "float const* p = x.data_ptr<float>();",
                           "for (int i = 0; i < 2; ++i) *p = 2 * x.data_ptr<float>()[i];",
                           "// float* p = x.data_ptr<float>();"}) {
    EXPECT_THAT(Found(body), IsEmpty()) << body;
  }
}

TEST(FindWritableInputsTest, AParameterEndsWithItsFunction) {
  const char* text =
      "namespace n {\nvoid f(const BE::Tensor x) { if (a) {} }\nvoid g(BE::Tensor x) { float* p = x.data_ptr<float>(); "
      "}\n"
      "void d(const BE::Tensor x);\nvoid h(Array x) { float* p = x.data_ptr<float>(); }\n}\n";
  EXPECT_THAT(FindWritableInputs(text), IsEmpty());
}

// Each of these would take quadratic time without a bound.
TEST(FindWritableInputsTest, LooksAtSoManyTokensOnly) {
  const auto repeated = [](int count, const std::string& text) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  EXPECT_THAT(Found(repeated(100'000, "x.data_ptr<")), IsEmpty());
  EXPECT_THAT(Found(repeated(100'000, "x.data_ptr()[")), IsEmpty());
  EXPECT_THAT(Found(repeated(100'000, "*(x.data_ptr() + ")), IsEmpty());
  EXPECT_THAT(Found(repeated(100'000, "* p = x.data_ptr() ")), IsEmpty());
  std::string inputs = "const BE::Tensor x";
  for (int i = 0; i < 50'000; ++i) inputs += StrCat(", const BE::Tensor x", i);
  EXPECT_THAT(Found(repeated(50'000, "{;"), inputs), IsEmpty());
  EXPECT_THAT(Found(repeated(1'000, "x.data_ptr<float>()[0] = 1;")), testing::SizeIs(20));
}

TEST(FindWritableInputsTest, TakesAnyText) {
  for (const char* text : {"data_ptr", "x.data_ptr", "const BE::Tensor x) x.data_ptr<", "const Tensor x, x.data_ptr()[",
                           "}}} const Tensor x) { = x.data_ptr<float>()", "const Tensor"}) {
    EXPECT_THAT(FindWritableInputs(text), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace kernix::language
