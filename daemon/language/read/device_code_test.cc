// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/device_code.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "common/base/strings.h"

namespace kernix::language {
namespace {

constexpr char kKernel[] =
    "__attribute__((global)) void add(const float* a, float* b, int n) { if (n > 0) b[0] += a[0]; }\n"
    "static __attribute__((constant)) float factors[4];\n";

bool Same(std::string_view one, std::string_view other) {
  const auto digest = DigestOfDeviceCode(one);
  return digest.has_value() && digest == DigestOfDeviceCode(other);
}

// Whether a host function's body may be edited from `before` to `after` in a unit that begins with `unit`.
bool MayEditBody(std::string_view before, std::string_view after, std::string_view unit = kKernel,
                 std::string_view head = "void host(int n, float* p)") {
  return Same(StrCat(unit, head, " { ", before, " }\nint last;\n"),
              StrCat(unit, head, " { ", after, " }\nint last;\n"));
}

TEST(DeviceCodeTest, WhiteSpaceAndLinesDoNotCount) {
  EXPECT_TRUE(Same("int a = b+c;\n", "int  a =\n\n    b + c ;"));
  EXPECT_TRUE(Same("# 1 \"a.cu\"\nint a;\nint b;\n", "# 1 \"a.cu\"\n\n\nint a;\n# 57 \"a.cu\"\nint b;\n"));
  EXPECT_TRUE(Same("int f(int a)\n# 3 \"a.cu\"\n{ return a; }", "int f(int a)\n# 9 \"a.cu\"\n{ return a; }"));
  EXPECT_TRUE(Same("# 1 \"a.cu\"\n# 1 \"h.h\" 1\nint a;\n# 2 \"a.cu\" 2\nint b;",
                   "# 1 \"a.cu\"\n# 1 \"h.h\" 1\nint a;\n# 7 \"a.cu\" 2\nint b;"));
}

TEST(DeviceCodeTest, TokensCount) {
  EXPECT_FALSE(Same("int a = 1;", "int a = 2;"));
  EXPECT_FALSE(Same("int a;", "int b;"));
  EXPECT_FALSE(Same("int ab;", "int a b;"));
  EXPECT_FALSE(Same("const char* s = \"a b\";", "const char* s = \"a  b\";"));
  EXPECT_FALSE(Same("char c = ' ';", "char c = '\\t';"));
  EXPECT_FALSE(Same("auto s = R\"(a\nb)\";", "auto s = R\"(a\n\nb)\";"));
}

TEST(DeviceCodeTest, WhiteSpaceThatPartsTokensCounts) {
  for (const auto& [joined, parted] :
       std::initializer_list<std::pair<const char*, const char*>>{{"a++b", "a+ +b"},
                                                                  {"a--b", "a- -b"},
                                                                  {"a&&b", "a& &b"},
                                                                  {"a||b", "a| |b"},
                                                                  {"a<<b", "a< <b"},
                                                                  {"a>>b", "a> >b"},
                                                                  {"a==b", "a= =b"},
                                                                  {"a<=b", "a< =b"},
                                                                  {"a>=b", "a> =b"},
                                                                  {"a!=b", "a! =b"},
                                                                  {"a+=b", "a+ =b"},
                                                                  {"a->b", "a- >b"},
                                                                  {"a::b", "a: :b"},
                                                                  {"a.*b", "a. *b"},
                                                                  {"a->*b", "a-> *b"},
                                                                  {"a<=>b", "a<= >b"},
                                                                  {"\"a\"_s", "\"a\" _s"},
                                                                  {"'a'_c", "'a' _c"},
                                                                  {"u8\"a\"", "u8 \"a\""}}) {
    EXPECT_FALSE(Same(StrCat("x(", joined, ");"), StrCat("x(", parted, ");"))) << parted;
  }
  EXPECT_TRUE(Same("x(a = -b);", "x(a=-b);"));
  EXPECT_TRUE(Same("x(a, *b);", "x(a,*b);"));
}

TEST(DeviceCodeTest, FilesAndPragmasCount) {
  EXPECT_FALSE(Same("# 1 \"a.h\" 1\nint a;", "# 1 \"b.h\" 1\nint a;"));
  EXPECT_FALSE(Same("# 1 \"a.h\" 1\nint a;", "# 1 \"a.h\" 1 3\nint a;"));
  EXPECT_FALSE(Same("#pragma unroll 2\nint a;", "#pragma unroll 4\nint a;"));
  EXPECT_FALSE(Same("#pragma other\nint a;", "#pragma other int a;\n"));
  EXPECT_FALSE(Same("#pragma one\n#pragma other\n", "#pragma one #pragma other\n"));
  EXPECT_FALSE(Same("void f() {\n#pragma unroll 2\nfor (;;); }", "void f() {\n#pragma unroll 4\nfor (;;); }"));
}

// A literal that nothing closes ends with its line: pragmas may have such.
TEST(DeviceCodeTest, ALiteralIsNotTheTokensThatItLooksLike) {
  const std::string parted("\1\0int\0\0y\0\0;", 11);  // as they would be digested without their lengths
  EXPECT_FALSE(Same("#pragma a 't\nint y;", StrCat("#pragma a 't", parted)));
}

TEST(DeviceCodeTest, AUnitThatAsksForItsLinesHasNoDigest) {
  EXPECT_FALSE(DigestOfDeviceCode("int a = __builtin_LINE();").has_value());
  EXPECT_FALSE(DigestOfDeviceCode("int a = __builtin_COLUMN();").has_value());
  EXPECT_FALSE(DigestOfDeviceCode("auto a = __builtin_source_location();").has_value());
  EXPECT_TRUE(DigestOfDeviceCode("const char* a = \"__builtin_LINE\";").has_value());
}

TEST(DeviceCodeTest, TheBodyOfAHostFunctionDoesNotCount) {
  EXPECT_TRUE(MayEditBody("add<<<n / 256, 256>>>(p, p, n);", "int block = 64; add<<<n / block, block>>>(p, p, n);"));
  for (const char* head :
       {"static void host(int n, float* p)", "std::vector<int> host(int n, float* p)",
        "extern \"C\" int host(int n, float* p)", "inline void a::b::host(int n, float* p) const",
        "void host(int n, float* p) noexcept", "[[nodiscard]] static int host(int n, float* p)",
        "__attribute__((host)) static void host(int n, float* p)", "const char* host(int n = 3, float* p = nullptr)"}) {
    EXPECT_TRUE(MayEditBody("p[0] = 1;", "p[0] = 2;", kKernel, head)) << head;
  }
  EXPECT_TRUE(MayEditBody("p[0] = 1;", "p[0] = 2;", StrCat("namespace a { extern \"C\" { namespace {", kKernel)));
  EXPECT_TRUE(MayEditBody("f(\n# 3 \"a.cu\" 3 4\n__null\n# 3 \"a.cu\"\n);", "f(0);"));
  EXPECT_TRUE(MayEditBody("[[maybe_unused]] int a = 1;", "[[maybe_unused]] int a = 2;"));
  EXPECT_TRUE(MayEditBody("struct A { int f() { return 1; } };", "auto f = [](int i) { return i; };"));
}

TEST(DeviceCodeTest, WhatAHostFunctionNamesOfTheDeviceCounts) {
  EXPECT_FALSE(MayEditBody("", "add<<<1, 1>>>(p, p, n);"));
  EXPECT_FALSE(MayEditBody("", "f(factors);"));
  EXPECT_FALSE(MayEditBody("f(add);", "f(factors);"));
  EXPECT_FALSE(MayEditBody("", "pointer = f;", "__attribute__((device)) float (*pointer)(int);\n"));
  EXPECT_FALSE(MayEditBody("", "g(S::member);", "struct S { static __attribute__((device)) int member; };\n"));
  EXPECT_TRUE(MayEditBody("", "const float x = 1; if (p[0] > x) p[0] = static_cast<float>(n);"));
  EXPECT_TRUE(MayEditBody("add<<<1, 1>>>(p, p, n);", "add<<<2, 1>>>(p, p, n); add<<<2, 1>>>(p, p, n);"));
}

TEST(DeviceCodeTest, TheHeadOfAHostFunctionCounts) {
  EXPECT_FALSE(Same("void f(int a) {}", "void f(long a) {}"));
  EXPECT_FALSE(Same("void f(int a = 1) {}", "void f(int a = 2) {}"));
  EXPECT_FALSE(Same("void f() {}", "int f() {}"));
  EXPECT_FALSE(Same("void f() {}", "void f();"));
  EXPECT_FALSE(Same("void f() {} void g() {}", "void g() {} void f() {}"));
}

TEST(DeviceCodeTest, ABodyThatDevicesMayUseCounts) {
  for (const char* head :
       {"constexpr int host(int n, float* p)", "consteval int host(int n, float* p)", "auto host(int n, float* p)",
        "template <typename T> void host(int n, T* p)", "void host(auto n, float* p)",
        "__attribute__((device)) void host(int n, float* p)", "void host(int n, float* p) __attribute__((device))",
        "__attribute__((host)) __attribute__((device)) void host(int n, float* p)",
        "__attribute__((host, device)) void host(int n, float* p)", "[[gnu::device]] void host(int n, float* p)",
        "__attribute__((global)) void host(int n, float* p)", "struct A { void host(int n, float* p)",
        "int x = 3, host(int n, float* p)", "A::A(int n, float* p) : a(n)", "A::A(int n, float* p) : a{n}, b(p)",
        "decltype(add) host(int n, float* p)", "bool operator==(A n, B p)"}) {
    EXPECT_FALSE(MayEditBody("p[0] = 1;", "p[0] = 2;", kKernel, head)) << head;
  }
  for (const char* body : {"auto f = [] __attribute__((device)) (int i) { return 1; };", "asm(\"nop\");",
                           "auto f = [] [[gnu::device]] (int i) { return 1; };", "extern void g();",
                           "struct L { __attribute__((device)) int f() { return 1; } };"}) {
    EXPECT_FALSE(MayEditBody(StrCat(body, " p[0] = 1;"), StrCat(body, " p[0] = 2;"))) << body;
    EXPECT_FALSE(MayEditBody("", body)) << body;
  }
}

TEST(DeviceCodeTest, ABodyCountsIfItsFunctionMayBeDeclaredForDevices) {
  for (const char* unit :
       {"__attribute__((device)) void host(int, float*);\n",
        "__attribute__((device)) void (host)(int, float*);\n",
        "void __attribute__((device)) ((host)) (int, float*);\n",
        "void host(int, float*) __attribute__((device));\n",
        "[[gnu::device]] void host(int, float*);\n",
        "typedef void F(int, float*); __attribute__((device)) F host;\n",
        "typedef void F(int, float*); F host __attribute__((device));\n",
        "typedef void F(int, float*); __attribute__((device)) F other, (host);\n",
        "__attribute__((device)) int a[3], host(int);\n",
        "__attribute__((device)) auto host(int) -> int;\n",
        "__attribute__((device)) int f(int) noexcept(true), host(int);\n",
        "__attribute__((device)) decltype(f(1)) host(::size_t);\n",
        "__attribute__((device)) int (::host)(int);\n",
        "__attribute__((device)) decltype(1) (host)(int);\n",
        "extern \"C\" __attribute__((device)) void host(int);\n",
        "__attribute__((device)) int (*host(int))(int);\n",
        "namespace n { __attribute__((device)) void host(int); }\n",
        "template <typename T> __attribute__((device)) void host(int, T*);\n",
        "__attribute__((device)) void f() { __attribute__((device)) void host(int, float*); }\n",
        "void f() { void host(int, float*) __attribute__((device)); }\n",
        "int x = ([] { __attribute__((device)) void host(int, float*); return 1; })();\n",
        "auto f = [] -> struct A { __attribute__((device)) void host(int, float*); return {}; };\n",
        "struct A f() { __attribute__((device)) void host(int, float*); return {}; }\n",
        "struct A { friend __attribute__((device)) void host(int, float*); };\n",
        "struct A { void f() { __attribute__((device)) void host(int, float*); } };\n",
        "struct A { int x = f([] { __attribute__((device)) void host(int, float*); }); };\n",
        "template <typename T> struct A { friend __attribute__((device)) void host(int, T*); };\n"}) {
    EXPECT_FALSE(MayEditBody("p[0] = 1;", "p[0] = 2;", unit)) << unit;
  }
  EXPECT_FALSE(Same("void f() { g(1); }\n__attribute__((device)) void f();",
                    "void f() { g(2); }\n__attribute__((device)) void f();"));
  for (const char* unit : {"struct A { __attribute__((device)) void host(int, float*); };\n",
                           "template <> class A<int> { __attribute__((device)) void host(int, float*); };\n",
                           "namespace A { __attribute__((device)) void host(int, float*); }\n"}) {
    EXPECT_FALSE(MayEditBody("p[0] = 1;", "p[0] = 2;", unit, "void A::host(int n, float* p)")) << unit;
  }
}

TEST(DeviceCodeTest, ABodyDoesNotCountWhereDeviceCodeOnlyHasItsName) {
  for (const char* unit :
       {"__attribute__((device)) int f(int host) { return host; }\n",
        "__attribute__((device)) int f(int (*host)(int));\n",
        "__attribute__((device)) int f() { int host = 1; return host; }\n",
        "__attribute__((device)) void f() { goto host; host: return; }\n",
        "struct A { int host; __attribute__((device)) int f() { return host; } };\n",
        "struct A { __attribute__((device)) int host() { return this->host(); } };\n",
        "struct __attribute__((aligned(8))) A : B { public: __attribute__((device)) int host(); int x = 1; };\n",
        "struct A { A() : x{1} {} int x; __attribute__((device)) int host(); };\n",
        "union A { int x; __attribute__((device)) int host(); };\n",
        "__attribute__((host)) __attribute__((device)) void f();\n", "#pragma host\n",
        "__attribute__((device)) A::host f();\n", "__attribute__((device)) host<int>* f(host&, const host*);\n",
        "template <int host> __attribute__((device)) int f() { return host; }\n"}) {
    EXPECT_TRUE(MayEditBody("p[0] = 1;", "p[0] = 2;", StrCat(kKernel, unit))) << unit;
  }
}

// cicc makes no device code of a function that is not declared for devices, whatever refers to it.
TEST(DeviceCodeTest, ABodyDoesNotCountWhereDeviceCodeRefersToItsFunction) {
  for (const char* code :
       {"void f() { host(1, nullptr); }", "void f() { void (*g)(int, float*) = &host; g(1, nullptr); }",
        "void f() { call(host); }", "void f() { call<&host>(); }", "decltype(host(1, nullptr))* f();",
        "constexpr bool quiet = noexcept(host(1, nullptr));", "int f(A a) { return a.host; }"}) {
    const std::string unit =
        StrCat("void host(int, float*);\n__attribute__((host)) __attribute__((device)) ", code, "\n");
    EXPECT_TRUE(MayEditBody("p[0] = 1;", "p[0] = 2;", unit)) << code;
  }
}

TEST(DeviceCodeTest, UnusedVariablesOfABodyCount) {
  for (const char* body : {"int x = 1;",
                           "int x;",
                           "auto x = n;",
                           "const T x(n);",
                           "T<int> x = n;",
                           "T<T<int>> x;",
                           "T<int> x{};",
                           "const char* const x = 0;",
                           "int* x = p;",
                           "T& x = p[0];",
                           "int x{n};",
                           "int x[3];",
                           "int y = 1, x = y;",
                           "int y, x; y++;",
                           "int x, y; y++;",
                           "for (int x : {1, 2}) f();",
                           "int x; x = 1;",
                           "int x = 1; x = n;",
                           "int x, y; f(x = y = n, y);",
                           "static int x = 1;",
                           "int x; p->x = n; f(p->x);",
                           "f([](int n) { int x = n; });"}) {
    EXPECT_FALSE(MayEditBody("", body)) << body;
    EXPECT_FALSE(MayEditBody(body, StrCat(body, " f(x);"))) << body;
    EXPECT_TRUE(MayEditBody(StrCat(body, " f(1);"), StrCat(body, " f(2);"))) << body;
  }
  for (const char* body :
       {"int x = 1; f(x);", "int x; x = 1; f(x == 1);", "int x = 1; x += n;", "*p = 1;", "p[0] = p->x;", "return x;",
        "f(n, x, p);", "n = a * x;", "f(n * x, n);", "if (n > f(x)) g();", "k<<<x, y, 0, z>>>(n);", "goto x; x: f();",
        "f(new x(1));", "n = 1; p = nullptr;", "int x = 1; [&] { f(x); }();"}) {
    EXPECT_TRUE(MayEditBody("", body)) << body;
  }
}

TEST(DeviceCodeTest, BodiesCountIfTemplatesMayAddDeviceCode) {
  for (const char* unit : {"template <typename T> __attribute__((global)) void k(T* p) {}\n",
                           "template <typename T> __attribute__((global)) void k(T* p);\n",
                           "__attribute__((global)) void k(auto x) {}\n",
                           "template <typename T> [[gnu::global]] void k(T* p) {}\n",
                           "template <typename T> [[gnu::__device__]] T zero;\n",
                           "__attribute__((global)) void k(int n, const Number auto& x);\n",
                           "template <typename T> __attribute__((device)) T zero;\n",
                           "template <typename T> __attribute__((device)) T zero = T(0);\n",
                           "template <typename T> __attribute__((device)) T zero(0);\n",
                           "template <typename T> __attribute__((device)) T zero(T(0));\n",
                           "template <typename T, int n> __attribute__((device)) T zero(n);\n",
                           "template <typename T> __attribute__((device)) T zero(A<T>::value);\n",
                           "template <typename T> __attribute__((device)) T zero(a, b);\n",
                           "template <typename T> __attribute__((device)) T zero{0};\n",
                           "template <typename T> __attribute__((device)) A<noexcept(T())> zero;\n",
                           "template <typename T> __attribute__((device)) A<T()> zero(0);\n",
                           "template <int I, en_t<I<2, int> = 0> __attribute__((device)) int zero = 0;\n",
                           "template <class... T> __attribute__((device)) int zero(sizeof...(T));\n",
                           "template <class... T> __attribute__((device)) A<T> zero(T{}...);\n",
                           "template <typename T> __attribute__((device)) T zero(T{});\n",
                           "template <typename T> __attribute__((device)) int zero(T::value);\n",
                           "template <typename T> __attribute__((device)) T zero(kOne<T>);\n",
                           "template <int n> __attribute__((device)) bool zero(n < 2);\n",
                           "template <class T> __attribute__((device)) A<n<2> zero = a > sizeof(T);\n",
                           "template <int I, en_t<I<2, int> = 0> __attribute__((device)) int zero = I > sizeof(int);\n",
                           "template <class T> __attribute__((device)) auto zero = A<1>([] "
                           "__attribute__((device)) {});\n",
                           "template <typename T> __attribute__((device)) T (*f)(int);\n",
                           "template <typename T> __attribute__((device)) decltype(T()) zero(n);\n",
                           "template <typename T> __attribute__((device)) decltype(T()) zero = 0;\n",
                           "struct A {}; template <typename T> __attribute__((device)) T zero(A());\n",
                           "template <typename T> __attribute__((constant)) T zero = T(0);\n",
                           "template <typename T> struct S { static __attribute__((device)) T x; };\n",
                           "struct S { template <typename T> static __attribute__((managed)) T x; };\n",
                           "template <typename T> void f() { g([] __attribute__((device)) (int i) {}); }\n",
                           "template <typename T> auto f() { return [] __attribute__((device)) (int i) {}; }\n",
                           "struct S { virtual __attribute__((device)) void f() {} };\n"}) {
    EXPECT_FALSE(MayEditBody("p[0] = 1;", "p[0] = 2;", unit)) << unit;
  }
  for (const char* unit :
       {"template <typename T> __attribute__((device)) T twice(T x) { return x + x; }\n",
        "template <typename T> struct S { __attribute__((device)) S() : a(1) {} int a; __attribute__((device)) T f(); "
        "};\n",
        "template <typename T> __attribute__((device)) T twice(T, size_t n, unsigned);\n",
        "template <typename T> __attribute__((device)) T twice();\n",
        "template <typename T> T zero = T(0);\n",
        "template <typename T> __attribute__((device)) decltype(T() + 1) twice() noexcept;\n",
        "template <typename T> __attribute__((device)) T* twice(::size_t n);\n",
        "template <typename T> __attribute__((device)) auto twice(T x) noexcept(noexcept(T())) -> decltype(f(x));\n",
        "template <typename T> __attribute__((device)) auto twice(T x) -> char (&)[1];\n",
        "template <typename T> __attribute__((device)) auto twice(T x) -> A<decltype(f(x)), 1>;\n",
        "template <typename T> __attribute__((device)) void twice(T x, int (*)(T));\n",
        "typedef unsigned long size_t; template <typename T> __attribute__((device)) T twice(size_t);\n",
        "using A = int; template <typename T> __attribute__((device)) T twice(A, const A&);\n",
        "struct A {}; namespace n { template <typename T> __attribute__((device)) T twice(::n::A, n::A&&); }\n",
        "struct S { int* a; int b; template <typename T> __attribute__((device)) void g(T); __attribute__((device)) "
        "S(int& v) : a(&v), b(1) {} };\n",
        "template <class... A> __attribute__((device)) int twice(A&&... a);\n",
        "template <typename T> __attribute__((device)) A<noexcept(T())> twice();\n",
        "template <typename T> __attribute__((device)) A<(sizeof(T) > 4)> twice(T x);\n",
        "template <size_t I, class S, en_t<I<2, int> = 0> __attribute__((device)) auto twice(S&& s);\n",
        "__attribute__((device)) int twice(auto x) { return x + x; }\n",
        "__attribute__((global)) void k(int* p) { auto x = *p; }\n",
        "struct S { virtual void f() {} };\n"}) {
    EXPECT_TRUE(MayEditBody("p[0] = 1;", "p[0] = 2;", unit)) << unit;
  }
}

TEST(DeviceCodeTest, ATextThatBreaksOffHasADigest) {
  for (const char* text : {"void f() {", "}", "}}", "void f(", "template <", "namespace", "extern \"C\"", "#", "# 1",
                           "__attribute__", "__attribute__((device", "inline", "", "struct {{", ")"}) {
    EXPECT_TRUE(Same(text, text)) << text;
    EXPECT_FALSE(Same(StrCat(text, " a"), StrCat(text, " b"))) << text;
  }
}

}  // namespace
}  // namespace kernix::language
