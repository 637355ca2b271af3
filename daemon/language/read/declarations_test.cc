// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/declarations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/strings.h"

namespace kernix::language {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

Declarations Read(std::string_view text) {
  return ReadDeclarations(text, [](std::string_view) { return 0; });
}

// "scope: name name" for each declaration.
std::vector<std::string> NamesOf(std::string_view text) {
  std::vector<std::string> lines;
  for (const Declaration& declaration : Read(text).list) {
    std::string line = StrCat(declaration.scope, ":");
    for (std::string_view name : declaration.names) StrAppend(&line, " ", name);
    lines.push_back(line);
  }
  return lines;
}

TEST(DeclarationsTest, FunctionsHaveTheirNameOnly) {
  EXPECT_THAT(NamesOf("extern double sin(double x) noexcept (true) __attribute__((nothrow));"), ElementsAre(": sin"));
  EXPECT_THAT(NamesOf("static inline float2 make(float x, float y) { float2 t; t.x = x; return t; } int after;"),
              ElementsAre(": make", ": after"));
  EXPECT_THAT(NamesOf("template <typename T, int kN = (3 > 2)> __attribute__((device)) T* first(T (&a)[kN]);"),
              ElementsAre(": first"));
  EXPECT_THAT(NamesOf("int (getc)(void); void (*signal(int sig, void (*func)(int)))(int);")[0], ": getc");
  EXPECT_THAT(NamesOf("struct S f(int a) { return {}; }"), ElementsAre(": S f"));
  EXPECT_THAT(
      NamesOf("template <class T> typename E<sizeof(T) == 16 && alignof(T) >= 16, T>::type cas(T* a) { } int b;"),
      ElementsAre(": cas", ": b"));
}

TEST(DeclarationsTest, TypesVariablesAndAliases) {
  EXPECT_THAT(NamesOf("typedef struct { int __val[2]; } fsid;"), ElementsAre(": fsid"));
  EXPECT_THAT(NamesOf("struct __attribute__((aligned(8))) float2 { float x, y; }; typedef struct float2 float2;"),
              ElementsAre(": float2", ": float2 float2"));
  EXPECT_THAT(NamesOf("enum Color : int { red, green = 1 + 2, blue }; enum class E { a, b };"),
              ElementsAre(": Color red green blue", ": E"));
  EXPECT_THAT(NamesOf("extern const uint3 threadIdx; int a = f(b, c), d[3]; using X = Y<Z>; using std::abs;"),
              ElementsAre(": threadIdx", ": a d", ": X", ": abs"));
  EXPECT_THAT(NamesOf("typedef int (*callback)(int value); static union { int low; int high; };"),
              ElementsAre(": callback", ": low high"));
  EXPECT_THAT(NamesOf("template <> struct hash<int> : base<(1 > 0)> { int operator()(int) const; };"),
              ElementsAre(": hash"));
  EXPECT_THAT(NamesOf("template <typename T> inline constexpr bool is_x_v = is_x<T, int>::value;"),
              ElementsAre(": is_x_v"));
}

TEST(DeclarationsTest, NamespacesAreScopes) {
  EXPECT_THAT(
      NamesOf("namespace std { inline namespace v1 __attribute__((x)) { int a; } extern \"C\" { int b; } } int c;"),
      ElementsAre(": std", "std: v1", "std::v1: a", "std: b", ": c"));
  EXPECT_THAT(NamesOf("namespace a::b { int x; } namespace c = a::b;"), ElementsAre(": a b", "a::b: x", ": c"));
}

TEST(DeclarationsTest, OperatorsAndDirectivesAreKindsOfTheirOwn) {
  using Kind = Declaration::Kind;
  const Declarations read = Read(
      "bool operator==(pair a, pair b) { return true; } void* operator new(size_t n); using namespace std;"
      "static_assert(sizeof(int) == 4, \"x\"); asm(\"nop\");");
  std::vector<Kind> kinds;
  for (const Declaration& declaration : read.list) kinds.push_back(declaration.kind);
  EXPECT_THAT(kinds,
              ElementsAre(Kind::kOperator, Kind::kAllocation, Kind::kUsingNamespace, Kind::kNothing, Kind::kNothing));
  EXPECT_THAT(read.list[0].names, Contains("pair"));
}

TEST(DeclarationsTest, BodiesAreNotDeclarations) {
  const Declarations read = Read("inline float f(float x) { struct Local {}; return sqrtf(x); }");
  ASSERT_EQ(read.list.size(), 1u);
  EXPECT_THAT(read.list[0].names, ElementsAre("f"));
  EXPECT_THAT(read.list[0].body, Contains("sqrtf"));
}

TEST(DeclarationsTest, MacrosThatAreDefinedAtTheEnd) {
  const Declarations read = Read("#define A 1\n#define B(x) x\n#undef A\n#define C\n#define C 2\n");
  EXPECT_THAT(read.macros, UnorderedElementsAre(Key("B"), Key("C")));
  EXPECT_NE(Read("#define C 1\n").macros.at("C").digest, read.macros.at("C").digest);
}

TEST(DeclarationsTest, OriginsFollowTheFileThatDefinesTheirMacro) {
  const std::string text =
      "# 1 \"all.h\"\nint a;\n# 1 \"maths.h\" 1\n#define MATHS_H\nint b;\n# 1 \"deep.h\" 1 3\nint c;\n"
      "# 3 \"maths.h\" 2 3\nint d;\n# 3 \"all.h\" 2\nint e;\n";
  const Declarations read = ReadDeclarations(text, [](std::string_view macro) { return macro == "MATHS_H" ? 7u : 0u; });
  std::vector<uint32_t> origins;
  for (const Declaration& declaration : read.list) origins.push_back(declaration.origin);
  EXPECT_THAT(origins, ElementsAre(0, 7, 7, 7, 0));
}

TEST(DeclarationsTest, TheSameDeclarationHasTheSameDigest) {
  const auto digest = [](std::string_view text) { return Read(text).list.back().digest; };
  EXPECT_EQ(digest("int f(int);"), digest("int  f ( int ) ;"));
  EXPECT_NE(digest("int f(int);"), digest("int f(long);"));
  EXPECT_NE(digest("int f(int);"), digest("namespace a { int f(int); }"));
}

TEST(DeclarationsTest, ReadsWhatIsNotCppToItsEnd) {
  for (const std::string_view text : {"}}} int a;", "int f( { [", "template <", "namespace {", "# 1\n#define\n", "="}) {
    Read(text);
  }
  EXPECT_THAT(NamesOf(""), IsEmpty());
}

}  // namespace

}  // namespace kernix::language
