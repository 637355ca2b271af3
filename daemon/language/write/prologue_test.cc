// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/write/prologue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix::language {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::string PrologueOf(const std::string& text) { return Prologue({text}); }

TEST(PrologueTest, CostsNothingForPlainKernels) {
  EXPECT_THAT(
      PrologueOf("#include <cuda_runtime.h>\n#include \"brainevent/common.h\"\n"
                 "// std::vector in a comment\nconst char* s = \"std::string\";\n"
                 "void f(const BE::Tensor a, BE::Tensor b) { BE_CHECK(a.ndim() == 1) << \"vector\"; a.size(0); }"),
      IsEmpty());
  EXPECT_THAT(PrologueOf("int max(int a, int b); int vector; int g(S s) { return s.sqrt(); }"), IsEmpty());
}

TEST(PrologueTest, IncludesWhatStdNamesNeed) {
  EXPECT_EQ(PrologueOf("std::vector<int> v;"), "#include <vector>\n");
  EXPECT_EQ(PrologueOf("using std::max;"), "#include <algorithm>\n");
  EXPECT_EQ(PrologueOf("#define V std :: vector<int>"), "#include <vector>\n");
  EXPECT_EQ(PrologueOf("std::unordered_map<int, std::optional<int>> m;"),
            "#include <optional>\n#include <unordered_map>\n");
}

TEST(PrologueTest, IncludesOurOwnHeadersByName) {
  EXPECT_EQ(PrologueOf("void f(BE::Span<const float> x, ::BE::Scratch s);"),
            "#include \"brainevent/scratch.h\"\n#include \"brainevent/span.h\"\n");
  EXPECT_THAT(PrologueOf("using namespace BE; struct Span {}; absl::Span<int> s; t.Scratch();"), IsEmpty());
}

TEST(PrologueTest, FollowsUsingNamespace) {
  EXPECT_EQ(PrologueOf("using namespace std;\nvector<int> v;"), "#include <vector>\n");
  EXPECT_THAT(PrologueOf("using namespace BE;\nvector<int> v;"), IsEmpty());
}

TEST(PrologueTest, IncludesWhatNamesOfCNeed) {
  EXPECT_EQ(PrologueOf("void f() { memcpy(a, b, 4); }"), "#include <cstring>\n");
  EXPECT_EQ(PrologueOf("float g(float x) { return sqrtf(x) * INFINITY; }"), "#include <cmath>\n");
  EXPECT_THAT(PrologueOf("void f(T t) { t.printf(); t->exit(); my::abort(); }"), IsEmpty());
}

TEST(PrologueTest, KnowsWhenChecksMustBeRuntimeErrors) {
  for (const char* text :
       {"catch (const std::runtime_error& e)", "#include <stdexcept>", "using namespace std; runtime_error e;"}) {
    EXPECT_THAT(PrologueOf(text), AllOf(HasSubstr("#define KERNIX_USES_STDEXCEPT 1"), HasSubstr("<stdexcept>")))
        << text;
  }
}

TEST(PrologueTest, KnowsWhenHalfTypesAreNeeded) {
  for (const char* text : {"BE::float16_t x;", "__half x;", "BE_DISPATCH_ALL(d, T, {})", "#include <cuda_fp16.h>",
                           "#include \"cuda_bf16.h\""}) {
    EXPECT_THAT(PrologueOf(text), HasSubstr("#define KERNIX_USES_HALF 1")) << text;
  }
  EXPECT_THAT(PrologueOf("BE_DISPATCH_ALL_TYPES(d, T, {})"), IsEmpty());
  for (const char* text :
       {"half x = 0;", "const half* p;", "f<half>(1);", "(half)x;", "reinterpret_cast<half*>(p);", "half2 v[2];"}) {
    EXPECT_THAT(PrologueOf(text), HasSubstr("KERNIX_USES_HALF")) << text;
  }
  for (const char* text :
       {"int half = n / 2; f(half, half);", "x = half * y;", "while (half > 0) half /= 2;", "a[half] = half;"}) {
    EXPECT_THAT(PrologueOf(text), IsEmpty()) << text;
  }
}

TEST(PrologueTest, HeadersCountAsSourcesDo) {
  EXPECT_EQ(Prologue({"#include \"a.h\"\n", "#include <b.h>\nstd::string s;", "std::optional<int> o;"}),
            "#include <optional>\n#include <string>\n");
  EXPECT_EQ(Prologue({"#include <a.h>\nvector<int> v;", "using namespace std;", "string s;"}),
            "#include <string>\n#include <vector>\n");
  EXPECT_THAT(PrologueOf("#include \"mine.h\"\n#include <yours.h>\n"), IsEmpty());
}

TEST(PrologueTest, AssumesTheWorstOfHeadersItCannotRead) {
  EXPECT_THAT(PrologueOf("#include \"/home/mine.h\""), AllOf(HasSubstr("KERNIX_USES_HALF"), HasSubstr("<vector>"),
                                                             HasSubstr("<unordered_map>"), HasSubstr("<cmath>")));
  EXPECT_THAT(PrologueOf("#include <vector>\n#include \"cublas_v2.h\""), IsEmpty());
}

}  // namespace
}  // namespace kernix::language
