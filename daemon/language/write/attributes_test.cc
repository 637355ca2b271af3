// SPDX-License-Identifier: Apache-2.0
//
// String and array attributes in handlers that the real compilers have built.
#include <cmath>
#include <cstdio>

#include "tests/support/kernel_runner.h"

namespace kernix::language {
namespace {

namespace ffi = kernix_ffi_abi;

constexpr char kKernels[] = R"(
#include "brainevent/common.h"
#include <stdio.h>
// @BE text
void text(BE::Tensor out, std::string_view s) {
  sprintf(out.data_ptr<char>(), "%zu:%.*s", s.size(), (int)s.size(), s.data());
}
// @BE by_reference
void by_reference(BE::Tensor out, const std::string_view& s, int n) {
  sprintf(out.data_ptr<char>(), "%d %c", n, s[s.size() - 1]);
}
template <typename T>
void Print(BE::Tensor out, BE::Span<const T> values) {
  char* text = out.data_ptr<char>();
  text += sprintf(text, "%zu:", values.size());
  for (T value : values) text += sprintf(text, " %g", (double)value);
}
// @BE i8
void i8(BE::Tensor out, BE::Span<const int8_t> x) { Print(out, x); }
// @BE u8
void u8(BE::Tensor out, const BE::Span<const uint8_t> x) { Print(out, x); }
// @BE i16
void i16(BE::Tensor out, const BE::Span<const short>& x) { Print(out, x); }
// @BE u16
void u16(BE::Tensor out, BE::Span<uint16_t const> x) { Print(out, x); }
// @BE i32
void i32(BE::Tensor out, ::BE::Span<const int> x) { Print<int>(out, x); }
// @BE u32
void u32(BE::Tensor out, BE::Span<const unsigned int> x) { Print(out, x); }
// @BE i64
void i64(BE::Tensor out, BE::Span<const std::int64_t> x) { Print(out, x); }
// @BE u64
void u64(BE::Tensor out, BE::Span<const unsigned long> x) { Print(out, x); }
// @BE f32
void f32(BE::Tensor out, BE::Span<const float> x) { Print(out, x); }
// @BE f64 ret attr.x
void f64(BE::Tensor out, BE::Span<const double> x) { Print(out, x); }
// @BE third
void third(BE::Tensor out, BE::Span<const float> x, float scale) {
  sprintf(out.data_ptr<char>(), "%g %d %d", scale * x[2], (int)(x.data() == x.begin()), (int)x.empty());
}
)";

class AttributesTest : public testing::Test {
 protected:
  static void* Library() {
    static Workshop workshop;
    static void* library = workshop.Open(kKernels);
    return library;
  }

  // The text that `function` writes, or the error.
  std::string Call(FakeCall& call, const std::string& function) {
    char text[256] = {};
    const std::string error = call.Result(text, {256}, ffi::kU8).Call(Library(), "kernix_handler_" + function);
    return error.empty() ? text : error;
  }

  std::string Text(const std::string& text) {
    FakeCall call;
    return Call(call.StringAttribute("s", text), "text");
  }

  template <typename T>
  std::string Array(const std::string& function, const std::vector<T>& values, uint32_t dtype) {
    FakeCall call;
    return Call(call.ArrayAttribute("x", values, dtype), function);
  }
};

TEST_F(AttributesTest, PassesStrings) {
  EXPECT_EQ(Text("hello"), "5:hello");
  EXPECT_EQ(Text(""), "0:");
  EXPECT_EQ(Text("gr\xc3\xbc\xc3\x9f"), "6:gr\xc3\xbc\xc3\x9f");
  FakeCall call;
  EXPECT_EQ(Call(call.StringAttribute("s", "xyz").Attribute("n", int64_t{7}, ffi::kS64), "by_reference"), "7 z");
}

TEST_F(AttributesTest, PassesArraysOfEveryType) {
  EXPECT_EQ(Array<int8_t>("i8", {-128, 127}, ffi::kS8), "2: -128 127");
  EXPECT_EQ(Array<uint8_t>("u8", {255}, ffi::kU8), "1: 255");
  EXPECT_EQ(Array<int16_t>("i16", {-32768}, ffi::kS16), "1: -32768");
  EXPECT_EQ(Array<uint16_t>("u16", {65535}, ffi::kU16), "1: 65535");
  EXPECT_EQ(Array<int32_t>("i32", {1, 2, 3}, ffi::kS32), "3: 1 2 3");
  EXPECT_EQ(Array<uint32_t>("u32", {4000000}, ffi::kU32), "1: 4e+06");
  EXPECT_EQ(Array<int64_t>("i64", {-5}, ffi::kS64), "1: -5");
  EXPECT_EQ(Array<uint64_t>("u64", {5}, ffi::kU64), "1: 5");
  EXPECT_EQ(Array<float>("f32", {0.5f, -1.5f}, ffi::kF32), "2: 0.5 -1.5");
  EXPECT_EQ(Array<double>("f64", {}, ffi::kF64), "0:");
}

TEST_F(AttributesTest, RefusesOtherTypes) {
  EXPECT_EQ(Array<double>("f32", {1}, ffi::kF64), "3: f32: attribute 'x' (float32[]) is an array of float64");
  EXPECT_EQ(Array<int64_t>("i32", {1}, ffi::kS64), "3: i32: attribute 'x' (int32[]) is an array of int64");
  EXPECT_EQ(Array<float>("f64", {}, ffi::kF32), "3: f64: attribute 'x' (float64[]) is an array of float32");
  EXPECT_EQ(Array<int8_t>("i8", {1}, ffi::kF8E4M3FN), "3: i8: attribute 'x' (int8[]) is an array of float8_e4m3fn");
  EXPECT_EQ(Array<int8_t>("i8", {1}, ffi::kF8E8M0FNU), "3: i8: attribute 'x' (int8[]) is an array of float8_e8m0fnu");
  EXPECT_EQ(Array<int8_t>("i8", {1}, ffi::kU4), "3: i8: attribute 'x' (int8[]) is an array of uint4");
  EXPECT_EQ(Array<int8_t>("i8", {1}, 99),
            "3: i8: attribute 'x' (int8[]) is an array of a type that kernix does not know");
  FakeCall scalar, text, array, number;
  EXPECT_EQ(Call(scalar.Attribute("x", 1.0f, ffi::kF32), "f32"),
            "3: f32: attribute 'x' (float32[]) must be a NumPy array, not a scalar");
  EXPECT_EQ(Call(text.StringAttribute("x"), "f32"),
            "3: f32: attribute 'x' (float32[]) must be a NumPy array, not a string");
  EXPECT_EQ(Call(array.ArrayAttribute<float>("s", {1}, ffi::kF32), "text"),
            "3: text: attribute 's' (string) must be a str, not an array");
  number.StringAttribute("s").ArrayAttribute<int32_t>("n", {1}, ffi::kS32);
  EXPECT_EQ(Call(number, "by_reference"), "3: by_reference: attribute 'n' (int32) must be a scalar");
  FakeCall none;
  EXPECT_EQ(Call(none, "f32"), Misfit("3: f32: attribute 'x' (float32[]) is missing"));
}

TEST_F(AttributesTest, SpansCheckTheirIndex) {
  FakeCall right, wrong;
  right.ArrayAttribute<float>("x", {1, 2, 3}, ffi::kF32).Attribute("scale", 2.0f, ffi::kF32);
  EXPECT_EQ(Call(right, "third"), "6 1 0");
  wrong.ArrayAttribute<float>("x", {1, 2}, ffi::kF32).Attribute("scale", 2.0f, ffi::kF32);
  EXPECT_EQ(Call(wrong, "third"), "13: third: BE::Span has no element 2");
}

// Functions whose parameter has another type than its token.
constexpr char kNarrow[] = R"(
#include "brainevent/common.h"
#include <stdio.h>
template <typename T>
void Print(BE::Tensor out, T k) { sprintf(out.data_ptr<char>(), "%.9g", (double)k); }
// @BE i64_int ret attr.k:int64
void i64_int(BE::Tensor out, int k) { Print(out, k); }
// @BE f32_int ret attr.k:float32
void f32_int(BE::Tensor out, int k) { Print(out, k); }
// @BE i64_bool ret attr.k:int64
void i64_bool(BE::Tensor out, bool k) { Print(out, k); }
// @BE f32_bool ret attr.k:float32
void f32_bool(BE::Tensor out, bool k) { Print(out, k); }
// @BE i32_unsigned ret attr.k:int32
void i32_unsigned(BE::Tensor out, unsigned k) { Print(out, k); }
// @BE f64_float ret attr.k:float64
void f64_float(BE::Tensor out, const float& k) { Print(out, k); }
// @BE i64_float ret attr.k:int64
void i64_float(BE::Tensor out, float k) { Print(out, k); }
// @BE u64_i64 ret attr.k:uint64
void u64_i64(BE::Tensor out, int64_t k) { Print(out, k); }
// @BE wider ret attr.k:int8
void wider(BE::Tensor out, long k) { Print(out, k); }
template <typename T>
void Templated(BE::Tensor out, T k) { Print(out, k); }
// @BE Templated<short> ret attr.k:int32
// @BE with_text ret attr.s:string attr.k:int64 stream
void with_text(BE::Tensor out, std::string_view s, uint8_t k, int64_t) { Print(out, k + s.size()); }
)";

class NarrowTest : public testing::Test {
 protected:
  static void* Library() {
    static Workshop workshop;
    static void* library = workshop.Open(kNarrow, {"-Wall", "-Wextra", "-Werror"});
    return library;
  }

  template <typename T>
  static std::string Call(const std::string& function, T value, uint32_t dtype) {
    FakeCall call;
    char text[256] = {};
    if (function == "with_text") call.StringAttribute("s", "");
    call.Result(text, {256}, ffi::kU8).Attribute("k", value, dtype);
    const std::string error = call.Call(Library(), "kernix_handler_" + function);
    return error.empty() ? text : error;
  }
};

TEST_F(NarrowTest, PassesWhatFits) {
  EXPECT_EQ(Call("i64_int", int64_t{-5}, ffi::kS64), "-5");
  EXPECT_EQ(Call("f32_int", 3.0f, ffi::kF32), "3");
  for (const int64_t k : {0, 1, 7, -1}) EXPECT_EQ(Call("i64_bool", k, ffi::kS64), k == 0 ? "0" : "1");
  EXPECT_EQ(Call("i64_bool", int64_t{1} << 40, ffi::kS64), "1");
  EXPECT_EQ(Call("f32_bool", 0.25f, ffi::kF32) + Call("f32_bool", -0.0f, ffi::kF32), "10");
  EXPECT_EQ(Call("i32_unsigned", int32_t{7}, ffi::kS32), "7");
  EXPECT_EQ(Call("f64_float", 0.1, ffi::kF64), "0.100000001");
  EXPECT_EQ(Call("i64_float", int64_t{1} << 40, ffi::kS64), "1.09951163e+12");
  EXPECT_EQ(Call("u64_i64", uint64_t{5}, ffi::kU64), "5");
  EXPECT_EQ(Call("wider", int8_t{-5}, ffi::kS8), "-5");
  EXPECT_EQ(Call("Templated_short", int32_t{-32768}, ffi::kS32), "-32768");
  EXPECT_EQ(Call("with_text", int64_t{255}, ffi::kS64), "255");
}

TEST_F(NarrowTest, RefusesWhatTheParameterCannotHold) {
  EXPECT_EQ(Call("i64_int", int64_t{4294967301}, ffi::kS64),
            "3: i64_int: attribute 'k' (int64) is 4294967301, which does not fit the C++ parameter (int32)");
  EXPECT_EQ(Call("f32_int", 2.75f, ffi::kF32),
            "3: f32_int: attribute 'k' (float32) is 2.75, which does not fit the C++ parameter (int32)");
  EXPECT_EQ(Call("f32_int", 1e10f, ffi::kF32),
            "3: f32_int: attribute 'k' (float32) is 1e+10, which does not fit the C++ parameter (int32)");
  EXPECT_EQ(Call("f32_int", NAN, ffi::kF32),
            "3: f32_int: attribute 'k' (float32) is nan, which does not fit the C++ parameter (int32)");
  EXPECT_EQ(Call("i32_unsigned", int32_t{-1}, ffi::kS32),
            "3: i32_unsigned: attribute 'k' (int32) is -1, which does not fit the C++ parameter (uint32)");
  EXPECT_EQ(Call("i32_unsigned", int64_t{3000000000}, ffi::kS64),
            "3: i32_unsigned: attribute 'k' (int32) is out of range");
  EXPECT_EQ(Call("f64_float", 1e300, ffi::kF64),
            "3: f64_float: attribute 'k' (float64) is 1.0000000000000001e+300, which does not fit the C++ parameter "
            "(float32)");
  EXPECT_EQ(Call("i64_float", (int64_t{1} << 40) + 1, ffi::kS64),
            "3: i64_float: attribute 'k' (int64) is 1099511627777, which does not fit the C++ parameter (float32)");
  EXPECT_EQ(Call("u64_i64", uint64_t{1} << 63, ffi::kU64),
            "3: u64_i64: attribute 'k' (uint64) is 9223372036854775808, which does not fit the C++ parameter (int64)");
  EXPECT_EQ(Call("Templated_short", int32_t{32768}, ffi::kS32),
            "3: Templated_short: attribute 'k' (int32) is 32768, which does not fit the C++ parameter (int16)");
  EXPECT_EQ(Call("with_text", int64_t{256}, ffi::kS64),
            "3: with_text: attribute 'k' (int64) is 256, which does not fit the C++ parameter (uint8)");
}

TEST(NarrowingTest, CostsNothingWhereTypesAgree) {
  const std::string text = Generate("k.cpp", R"(
// @BE agree ret attr.k:int64 attr.x:float32
void agree(BE::Tensor out, long k, double x) {}
// @BE inferred
void inferred(BE::Tensor out, bool k, short x) {})");
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("onver")));
}

// Functions whose parameters have types that kernix does not read.
constexpr char kOpaque[] = R"(
#include "brainevent/common.h"
#define To nothing
#define kTakes nothing
#include <cstddef>
#include <optional>
#include <stdio.h>
enum class Mode : unsigned char { kFast, kSlow };
enum Plain { kZero, kOne, kTwo };
struct Size { int width, height; };
struct Number { int of; Number(int n) : of(n) {} };
using Bits = uint16_t;
enum class Wide : int { kA };
// @BE wide ret attr.k:int64
void wide(BE::Tensor out, Wide k) { sprintf(out.data_ptr<char>(), "%d", static_cast<int>(k)); }
// @BE deduced<int> ret attr.k:float32
template <typename A, typename T>
void deduced(BE::Tensor out, T k) {
  sprintf(out.data_ptr<char>(), "%s", sizeof(k) == sizeof(float) && k / 2 != 1 ? "float" : "other");
}
#if __SIZEOF_INT__ > 1
typedef float Real;
#else
typedef double Real;
#endif
template <typename T>
void Print(BE::Tensor out, T k) { sprintf(out.data_ptr<char>(), "%g", (double)k); }
// @BE a_half ret attr.k:float16
void a_half(BE::Tensor out, BE::float16_t k) { Print(out, k); }
// @BE brain ret attr.k:bfloat16
void brain(BE::Tensor out, const BE::bfloat16_t& k) { Print(out, k); }
// @BE half_float ret attr.k:float16
void half_float(BE::Tensor out, float k) { Print(out, k); }
// @BE brain_double ret attr.k:bfloat16
void brain_double(BE::Tensor out, double k) { Print(out, k); }
// @BE half_real ret attr.k:float16
void half_real(BE::Tensor out, Real k) { Print(out, k); }
// @BE half_bits ret attr.k:float16
void half_bits(BE::Tensor out, uint16_t k) { Print(out, k); }
// @BE brain_bits ret attr.k:bfloat16
void brain_bits(BE::Tensor out, Bits k) { Print(out, k); }
// @BE mode ret attr.k:int32
void mode(BE::Tensor out, Mode k) { Print(out, static_cast<int>(k)); }
// @BE plain ret attr.k:int32?
void plain(BE::Tensor out, const Plain& k = kTwo) { Print(out, k); }
// @BE byte ret attr.k:int32
void byte(BE::Tensor out, std::byte k) { Print(out, static_cast<int>(k)); }
// @BE number ret attr.k:int32
void number(BE::Tensor out, Number k) { Print(out, k.of); }
// @BE maybe ret attr.k:float32
void maybe(BE::Tensor out, std::optional<float> k) { Print(out, *k); }
// @BE bytes ret attr.k:uint8[]
void bytes(BE::Tensor out, Size k) { Print(out, 10 * k.width + k.height); }
// @BE words ret attr.k:int32[]
void words(BE::Tensor out, const Size& k) { Print(out, 10 * k.width + k.height); }
)";

class OpaqueTest : public testing::Test {
 protected:
  static std::string Call(FakeCall& call, const std::string& function) {
    static Workshop workshop;
    static void* library = workshop.Open(kOpaque, {"-Wall", "-Wextra", "-Werror", "-O2", "-Waggregate-return"});
    char text[256] = {};
    const std::string error = call.Result(text, {256}, ffi::kU8).Call(library, "kernix_handler_" + function);
    return error.empty() ? text : error;
  }
  template <typename T>
  static std::string Scalar(const std::string& function, T value, uint32_t dtype) {
    FakeCall call;
    return Call(call.Attribute("k", value, dtype), function);
  }

  // The compiler's output for a host function with one attribute, which must not compile.
  static std::string Refusal(const std::string& token, const std::string& parameter) {
    Workshop workshop;
    const std::string source =
        "#include \"brainevent/common.h\"\nenum class Mode { kA };\nstruct Pair { int16_t a; };\n"
        "struct Owner { ~Owner(); };\n#if __SIZEOF_INT__ > 1\ntypedef int Int;\n#else\n"
        "typedef long Int;\n#endif\n// @BE f ret " +
        token + "\nvoid f(BE::Tensor, " + parameter + ") {}";
    const Outcome outcome = workshop.Compile("c++", Generate("k.cpp", source), {"-std=c++17", "-fsyntax-only"});
    EXPECT_NE(outcome.exit_code, 0) << source;
    return outcome.output;
  }
};

TEST_F(OpaqueTest, HalvesAreNumbersExceptInAnUint16) {
  constexpr uint16_t kHalf = 0x3e00, kBrain = 0x3fc0;  // 1.5
  for (const char* function : {"a_half", "half_float", "half_real"})
    EXPECT_EQ(Scalar(function, kHalf, ffi::kU16), "1.5");
  for (const char* function : {"brain", "brain_double"}) EXPECT_EQ(Scalar(function, kBrain, ffi::kU16), "1.5");
  EXPECT_EQ(Scalar("half_bits", kHalf, ffi::kU16), "15872");
  EXPECT_EQ(Scalar("brain_bits", kBrain, ffi::kU16), "16320");
}

TEST_F(OpaqueTest, OtherParametersForHalvesDoNotCompile) {
  for (const char* parameter : {"Mode a", "Pair a", "Int a"}) {
    EXPECT_THAT(
        Refusal("attr.a:float16", parameter),
        testing::HasSubstr("the parameter of f for attr.a:float16 must be a half, a float, a double, or a uint16_t"))
        << parameter;
  }
}

TEST_F(OpaqueTest, NumbersBecomeEnums) {
  EXPECT_EQ(Scalar("mode", int32_t{1}, ffi::kS32), "1");
  EXPECT_EQ(Scalar("plain", int32_t{1}, ffi::kS32), "1");
  EXPECT_EQ(Scalar("byte", int32_t{200}, ffi::kS32), "200");
  for (const int32_t value : {256, -1}) {
    EXPECT_THAT(Scalar("mode", value, ffi::kS32), testing::HasSubstr("attribute 'k' is no value of the enum")) << value;
  }
  EXPECT_THAT(Scalar("wide", int64_t{1} << 32, ffi::kS64), testing::HasSubstr("is no value of the enum"));
  EXPECT_EQ(Scalar("number", int32_t{7}, ffi::kS32), "7");
  EXPECT_EQ(Scalar("deduced_int", 3.0f, ffi::kF32), "float");
  EXPECT_EQ(Scalar("maybe", 2.5f, ffi::kF32), "2.5");
  FakeCall left_out;
  EXPECT_EQ(Call(left_out, "plain"), "2");
  EXPECT_THAT(
      Refusal("attr.a:int32", "Pair a"),
      testing::HasSubstr("the parameter of f for attr.a:int32 must be an enum, or a type to which C++ converts"));
}

TEST_F(OpaqueTest, ArraysBecomeStructs) {
  FakeCall bytes, words, wrong;
  EXPECT_EQ(Call(bytes.ArrayAttribute<uint8_t>("k", {1, 0, 0, 0, 2, 0, 0, 0}, ffi::kU8), "bytes"), "12");
  EXPECT_EQ(Call(words.ArrayAttribute<int32_t>("k", {1, 2}, ffi::kS32), "words"), "12");
  EXPECT_THAT(Call(wrong.ArrayAttribute<int32_t>("k", {1}, ffi::kS32), "words"),
              testing::HasSubstr("words: attribute 'k' has 4 bytes; the C++ parameter has 8"));
  EXPECT_THAT(Refusal("attr.a:int32[]", "BE::Span<const Mode> a"), testing::HasSubstr("must be a BE::Span<const int"));
  EXPECT_THAT(
      Refusal("attr.a:uint8[]", "Owner a"),
      testing::HasSubstr("the parameter of f for attr.a:uint8[] must be a BE::Span<const uint8_t>, or a struct"));
}

// Functions with default arguments.
constexpr char kDefaults[] = R"(
#include "brainevent/common.h"
#include <stdio.h>
enum class Mode { kFast, kSlow };
// @BE f
void f(const BE::Tensor, BE::Tensor out, int n, float a = 2.5f, const size_t k = sizeof(double), const void* p = nullptr,
       Mode = Mode::kSlow) {
  sprintf(out.data_ptr<char>(), "%d %g %zu %d", n, a, k, p == nullptr);
}
// @BE streamed
void streamed(BE::Tensor, float a = 2.5f, cudaStream_t = nullptr) { (void)a; }
// @BE with_scratch ret scratch:n attr.n:int32 attr.text:string? attr.m?
void with_scratch(BE::Tensor out, BE::Scratch s, int, std::string_view text = "none", short m = 3, bool = true) {
  sprintf(out.data_ptr<char>(), "%zu %.*s %d", s.size(), (int)text.size(), text.data(), m);
}
)";

class DefaultsTest : public testing::Test {
 protected:
  static std::string Call(FakeCall& call, const std::string& function) {
    static Workshop workshop;
    static void* library = workshop.Open(std::string("typedef void* cudaStream_t;\n") + kDefaults);
    char text[256] = {};
    float x = 1;
    if (function == "f") call.Argument(&x, {1}, ffi::kF32);
    call.Result(text, {256}, ffi::kU8).Attribute("n", int32_t{7}, ffi::kS32);
    const std::string error = call.Call(library, "kernix_handler_" + function);
    return error.empty() ? text : error;
  }
};

TEST_F(DefaultsTest, TheCompilerKnowsWhatIsLeftOut) {
  FakeCall none, one, both;
  EXPECT_EQ(Call(none, "f"), "7 2.5 8 1");
  EXPECT_EQ(Call(one.Attribute("a", 1.5f, ffi::kF32), "f"), "7 1.5 8 1");
  EXPECT_EQ(Call(both.Attribute("a", 1.5f, ffi::kF32).Attribute("k", int64_t{3}, ffi::kS64), "f"), "7 1.5 3 1");
}

TEST_F(DefaultsTest, WorkWithScratchMemoryAndStrings) {
  FakeCall none, one, both;
  EXPECT_EQ(Call(none, "with_scratch"), "7 none 3");
  EXPECT_EQ(Call(one.StringAttribute("text", "this"), "with_scratch"), "7 this 3");
  EXPECT_EQ(Call(both.StringAttribute("text", "this").Attribute("m", int16_t{4}, ffi::kS16), "with_scratch"),
            "7 this 4");
}

TEST_F(DefaultsTest, OnlyTheLastCanBeLeftOut) {
  FakeCall later, unknown, wrong;
  EXPECT_EQ(Call(later.Attribute("k", int64_t{3}, ffi::kS64), "f"),
            "3: f: attribute 'k' is given, so give 'a' before it, too: C++ can leave out default "
            "arguments only at the end");
  EXPECT_EQ(Call(unknown.Attribute("zz", int64_t{3}, ffi::kS64), "f"), Misfit("3: f: has no attribute 'zz'"));
  EXPECT_EQ(Call(wrong.StringAttribute("a"), "f"), "3: f: attribute 'a' (float32) must be a scalar");
}

TEST_F(AttributesTest, CompileUnderNvcc) {
  const std::optional<std::string> nvcc = FindNvcc();
  if (!nvcc.has_value()) GTEST_SKIP() << "no nvcc";
  Workshop workshop;
  const Outcome outcome =
      workshop.Compile(*nvcc, Generate("k.cu", kKernels, v1::LANGUAGE_CUDA),
                       {"-std=c++17", "-c", "-o", "/dev/null", "-Xcompiler", "-Wall,-Wextra,-Werror", "-arch=sm_80"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  const Outcome narrow =
      workshop.Compile(*nvcc, Generate("k.cu", kNarrow, v1::LANGUAGE_CUDA),
                       {"-std=c++17", "-c", "-o", "/dev/null", "-Xcompiler", "-Wall,-Wextra,-Werror", "-arch=sm_80"});
  EXPECT_EQ(narrow.exit_code, 0) << narrow.output;
  const Outcome opaque =
      workshop.Compile(*nvcc, Generate("k.cu", kOpaque, v1::LANGUAGE_CUDA),
                       {"-std=c++17", "-c", "-o", "/dev/null", "-Xcompiler", "-Wall,-Wextra,-Werror", "-arch=sm_80"});
  EXPECT_EQ(opaque.exit_code, 0) << opaque.output;
  const Outcome defaults =
      workshop.Compile(*nvcc, Generate("k.cu", kDefaults, v1::LANGUAGE_CUDA),
                       {"-std=c++17", "-c", "-o", "/dev/null", "-Xcompiler", "-Wall,-Werror", "-arch=sm_80"});
  EXPECT_EQ(defaults.exit_code, 0) << defaults.output;
}

}  // namespace
}  // namespace kernix::language
