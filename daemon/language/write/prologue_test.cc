// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/write/prologue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

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
  EXPECT_EQ(PrologueOf("void f(BE::In<float> x);"), "#include \"brainevent/typed.h\"\n");
  EXPECT_EQ(PrologueOf("using BE::In;\nvoid f(In<float> x);"), "#include \"brainevent/typed.h\"\n");
  EXPECT_THAT(PrologueOf("using namespace BE; struct Span {}; absl::Span<int> s; t.Scratch();"), IsEmpty());
  EXPECT_THAT(PrologueOf("be::Span<int> s; Span<int> t; namespace be = other;"), IsEmpty());
}

TEST(PrologueTest, IncludesOurOwnHeadersByAnAliasOfTheirNamespace) {
  for (const char* alias : {"namespace be = BE;", "namespace be = ::BE;"}) {
    EXPECT_EQ(PrologueOf(StrCat(alias, " void f(be::Span<int> x);")), "#include \"brainevent/span.h\"\n") << alias;
  }
  EXPECT_THAT(
      PrologueOf("using namespace BE; using be = BE; enum D { In, Out }; struct alignas(16) Span {}; be::Span s;"),
      IsEmpty());
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

TEST(PrologueTest, HeadersOfARequestCountButThoseOfXla) {
  const PrologueScan headers({{"a.h", "using namespace std;"},
                              {"xla/ffi.h", "std::optional<int> o;"},
                              {"other/xla/b.h", "std::array<int, 2> a;"}});
  EXPECT_EQ(Prologue({"string s;"}, headers), "#include <array>\n#include <string>\n");
  EXPECT_EQ(Prologue({"vector<int> v;"}, headers), "#include <array>\n#include <vector>\n");
}

TEST(PrologueTest, ATextCountsUnderEachOfItsPaths) {
  const std::string text = "std::optional<int> o;";
  EXPECT_EQ(Prologue({}, PrologueScan({{"xla/a.h", text}, {"a.h", text}})), "#include <optional>\n");
}

TEST(PrologueTest, AssumesTheWorstOfHeadersItCannotRead) {
  EXPECT_THAT(PrologueOf("#include \"/home/mine.h\""), AllOf(HasSubstr("KERNIX_USES_HALF"), HasSubstr("<vector>"),
                                                             HasSubstr("<unordered_map>"), HasSubstr("<cmath>")));
  EXPECT_THAT(PrologueOf("#include <vector>\n#include \"cublas_v2.h\""), IsEmpty());
}

std::string ReadText(const std::string& path) { return Env::Posix().ReadFile(path).value_or(""); }

// The room's own includes and those of common/cxx, relative to the repository.
std::set<std::string> IncludesOf(const std::string& text) {
  std::set<std::string> includes;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string_view rest(line.data(), line.size());
    if (!ConsumePrefix(rest, "#include \"") || !ConsumeSuffix(rest, "\"")) continue;
    if (rest.starts_with("common/cxx/") || rest.starts_with("daemon/language/")) includes.emplace(rest);
  }
  return includes;
}

// `file`, what it includes, the sources of the headers among these, what they include, and so on.
void AddFilesBehind(const std::string& file, std::set<std::string>& files) {
  const std::string text = ReadText(StrCat(KERNIX_SOURCE_DIR, "/", file));
  if (text.empty() || !files.insert(file).second) return;
  if (file.ends_with(".h")) AddFilesBehind(StrCat(file.substr(0, file.size() - 2), ".cc"), files);
  for (const std::string& include : IncludesOf(text)) AddFilesBehind(include, files);
}

// The digest stands for the prologue in keys.
TEST(PrologueSourcesTest, TheDigestCoversAllCodeBehindThePrologue) {
  std::set<std::string> needed;
  AddFilesBehind("daemon/language/write/prologue.cc", needed);
  EXPECT_THAT(needed, IsSupersetOf({"daemon/language/write/prologue.h", "common/cxx/lexer.cc"}));
  const std::string listed = StrCat(KERNIX_PROLOGUE_FILES, ",");
  for (const std::string& file : needed) EXPECT_THAT(listed, HasSubstr(StrCat(KERNIX_SOURCE_DIR, "/", file, ",")));
}

}  // namespace

}  // namespace kernix::language
