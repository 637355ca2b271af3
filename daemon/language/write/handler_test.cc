// SPDX-License-Identifier: Apache-2.0
//
// Generated handlers, compiled by the real compiler and called through frames like XLA's.
#include <dlfcn.h>

#include <cmath>
#include <limits>

#include "tests/support/kernel_runner.h"

namespace kernix::language {
namespace {

namespace ffi = kernix_ffi_abi;
using testing::AllOf;
using testing::StartsWith;

constexpr char kAddOne[] = R"(
#include "brainevent/common.h"
// @BE add_one arg ret
static inline void add_one(const BE::Tensor x, BE::Tensor& y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = x.data_ptr<const float>()[i] + 1;
}
)";

// Writes what it sees of a tensor and of its attributes into a text buffer.
constexpr char kDescribe[] = R"(
#include "brainevent/common.h"
#include <stdio.h>
// @BE describe
void describe(const BE::Tensor x, BE::Tensor out) {
  char* text = out.data_ptr<char>();
  text += sprintf(text, "%s %d %d %d:", dtype_name(x.dtype()), (int)x.element_size(), (int)x.numel(), (int)x.nbytes());
  for (int i = 0; i < x.ndim(); ++i) text += sprintf(text, " %d/%d", (int)x.shape(i), (int)x.stride(i));
}
// @BE numbers
void numbers(BE::Tensor out, bool b, int8_t i8, uint8_t u8, int16_t i16, uint16_t u16, int32_t i32, uint32_t u32,
             int64_t i64, uint64_t u64, float f32, double f64) {
  sprintf(out.data_ptr<char>(), "%d %d %d %d %d %d %u %lld %llu %g %g", b, i8, u8, i16, u16, i32, u32, (long long)i64,
          (unsigned long long)u64, f32, f64);
}
// @BE half ret attr.h:float16
void half(BE::Tensor out, uint16_t h) { sprintf(out.data_ptr<char>(), "%x", h); }
// @BE real
void real(BE::Tensor out, float x) { sprintf(out.data_ptr<char>(), "%.9g", x); }
// @BE small
void small(BE::Tensor out, int8_t x) { sprintf(out.data_ptr<char>(), "%d", x); }
// @BE big
void big(BE::Tensor out, uint64_t x) { sprintf(out.data_ptr<char>(), "%llu", (unsigned long long)x); }
// @BE flag
void flag(BE::Tensor out, bool x) { sprintf(out.data_ptr<char>(), "%d", x); }
)";

class HandlerTest : public testing::Test {
 protected:
  // One library for all tests of the suite, because compiling takes most of the time.
  static void* Describe() {
    static Workshop workshop;
    static void* library = workshop.Open(kDescribe);
    return library;
  }

  // The text that `function` writes for one attribute, or the error.
  template <typename T>
  std::string With(const std::string& function, T value, uint32_t dtype, const std::string& name = "x") {
    char text[256] = {};
    FakeCall call;
    call.Result(text, {256}, ffi::kU8).Attribute(name, value, dtype);
    const std::string error = call.Call(Describe(), "kernix_handler_" + function);
    return error.empty() ? text : error;
  }

  Workshop workshop_;
};

TEST_F(HandlerTest, CallsTheFunction) {
  void* library = workshop_.Open(kAddOne);
  float x[3] = {1, 2, 3}, y[3] = {};
  EXPECT_EQ(FakeCall().Argument(x, {3}, ffi::kF32).Result(y, {3}, ffi::kF32).Call(library, "kernix_handler_add_one"),
            "");
  EXPECT_THAT(y, testing::ElementsAre(2, 3, 4));
}

TEST_F(HandlerTest, AnswersTheMetadataQueryWithoutAnApi) {
  for (const bool graph : {true, false}) {
    const std::string path = workshop_.path() + (graph ? "/graph.so" : "/plain.so");
    const Outcome outcome = workshop_.Compile(
        "c++", Generate("k.cpp", kAddOne, v1::LANGUAGE_CPP, graph),
        {workshop_.HandlerRuntime(), "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-o", path});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto* handler = reinterpret_cast<ffi::Handler*>(dlsym(library, "kernix_handler_add_one"));
    ASSERT_NE(handler, nullptr);
    // An old runtime passes no `state_type_id`; the bytes after it belong to something else.
    struct {
      ffi::Metadata metadata = {};
      int64_t guard = 0x5a5a5a5a;
    } old;
    old.metadata.struct_size = sizeof(ffi::Metadata);
    ffi::MetadataExtension extension = {{sizeof(extension), ffi::kExtensionMetadata, nullptr}, &old.metadata};
    ffi::CallFrame frame = {};
    frame.extension_start = &extension.base;
    EXPECT_EQ(handler(&frame), nullptr);
    EXPECT_EQ(old.metadata.api_version.major_version, 0);
    EXPECT_EQ(old.metadata.api_version.minor_version, 1);
    EXPECT_EQ(old.metadata.traits, graph ? 1u : 0u);
    EXPECT_EQ(old.guard, 0x5a5a5a5a);
  }
}

TEST_F(HandlerTest, SaysWhatIsWrongWithACall) {
  void* library = workshop_.Open(kAddOne);
  float x[4] = {}, y[4] = {};
  const auto call = [&](FakeCall& frame) { return frame.Call(library, "kernix_handler_add_one"); };
  FakeCall none, many, results, rank, token, dtype, stage, attribute;
  EXPECT_EQ(call(none.Result(y, {4}, ffi::kF32)), Misfit("3: add_one: expected 1 argument, got 0"));
  many.Argument(x, {4}, ffi::kF32).Argument(x, {4}, ffi::kF32);
  EXPECT_EQ(call(many.Result(y, {4}, ffi::kF32)), Misfit("3: add_one: expected 1 argument, got 2"));
  results.Argument(x, {4}, ffi::kF32);
  EXPECT_EQ(call(results), Misfit("3: add_one: expected 1 result, got 0"));
  rank.Argument(x, {1, 1, 1, 1, 1, 1, 1, 1, 1}, ffi::kF32).Result(y, {4}, ffi::kF32);
  EXPECT_EQ(call(rank), "3: add_one: argument 0 has 9 dimensions; BE::Tensor holds at most 8");
  token.Argument(x, {4}, ffi::kF32).Result(y, {4}, ffi::kToken);
  EXPECT_EQ(call(token), "3: add_one: result 0 must be an array, not a token");
  dtype.Argument(x, {4}, ffi::kF32).Result(y, {4}, static_cast<ffi::DataType>(99));
  EXPECT_EQ(call(dtype), "3: add_one: result 0 has an element type that BE::Tensor cannot hold (XLA data type 99)");
  stage.Argument(x, {4}, ffi::kF32).Result(y, {4}, ffi::kF32).Stage(ffi::kStagePrepare);
  EXPECT_EQ(call(stage), "3: add_one: can only be called to execute");
  attribute.Argument(x, {4}, ffi::kF32).Result(y, {4}, ffi::kF32).Attribute("q", 1.0f, ffi::kF32);
  EXPECT_EQ(call(attribute), Misfit("3: add_one: has no attribute 'q'"));
}

TEST_F(HandlerTest, DescribesTensorsOfEveryRankAndType) {
  const auto describe = [](std::vector<int64_t> shape, uint32_t dtype) {
    char text[256] = {};
    FakeCall call;
    const std::string error = call.Argument(nullptr, std::move(shape), dtype)
                                  .Result(text, {256}, ffi::kU8)
                                  .Call(Describe(), "kernix_handler_describe");
    return error.empty() ? std::string(text) : error;
  };
  EXPECT_EQ(describe({}, ffi::kF32), "float32 4 1 4:");
  EXPECT_EQ(describe({0}, ffi::kF64), "float64 8 0 0: 0/1");
  EXPECT_EQ(describe({2, 3, 4}, ffi::kC128), "complex128 16 24 384: 2/12 3/4 4/1");
  EXPECT_EQ(describe({2, 0, 3}, ffi::kPred), "bool 1 0 0: 2/0 0/3 3/1");
  EXPECT_EQ(describe({1, 2, 1, 2, 1, 2, 1, 2}, ffi::kBF16), "bfloat16 2 16 32: 1/16 2/8 1/8 2/4 1/4 2/2 1/2 2/1");
  const std::vector<std::pair<uint32_t, std::string>> types = {{ffi::kS8, "int8 1"},
                                                               {ffi::kS16, "int16 2"},
                                                               {ffi::kS32, "int32 4"},
                                                               {ffi::kS64, "int64 8"},
                                                               {ffi::kU8, "uint8 1"},
                                                               {ffi::kU16, "uint16 2"},
                                                               {ffi::kU32, "uint32 4"},
                                                               {ffi::kU64, "uint64 8"},
                                                               {ffi::kF16, "float16 2"},
                                                               {ffi::kC64, "complex64 8"},
                                                               {ffi::kF8E5M2, "float8_e5m2 1 1 1"},
                                                               {ffi::kF8E4M3FN, "float8_e4m3fn 1 1 1"},
                                                               {ffi::kF8E4M3B11FNUZ, "float8_e4m3b11fnuz 1 1 1"},
                                                               {ffi::kF8E5M2FNUZ, "float8_e5m2fnuz 1 1 1"},
                                                               {ffi::kF8E4M3FNUZ, "float8_e4m3fnuz 1 1 1"},
                                                               {ffi::kF8E4M3, "float8_e4m3 1 1 1"},
                                                               {ffi::kF8E3M4, "float8_e3m4 1 1 1"},
                                                               {ffi::kF8E8M0FNU, "float8_e8m0fnu 1 1 1"}};
  for (const auto& [dtype, expected] : types) EXPECT_THAT(describe({1}, dtype), StartsWith(expected));
  // Several elements share a byte, so an element has no size of its own.
  const std::vector<std::pair<uint32_t, std::string>> packed = {{ffi::kF4E2M1FN, "float4_e2m1fn 0 9 5"},
                                                                {ffi::kS4, "int4 0 9 5"},
                                                                {ffi::kU4, "uint4 0 9 5"},
                                                                {ffi::kS2, "int2 0 9 3"},
                                                                {ffi::kU2, "uint2 0 9 3"},
                                                                {ffi::kS1, "int1 0 9 2"},
                                                                {ffi::kU1, "uint1 0 9 2"}};
  for (const auto& [dtype, expected] : packed) EXPECT_EQ(describe({3, 3}, dtype), expected + ": 3/3 3/1");
  for (const uint32_t none : {0, 13, 14, 17, 34, 1000}) EXPECT_THAT(describe({1}, none), StartsWith("3: describe: "));
}

TEST_F(HandlerTest, PassesEveryTypeOfAttribute) {
  char text[256] = {};
  FakeCall call;
  call.Result(text, {256}, ffi::kU8)
      .Attribute("b", true, ffi::kPred)
      .Attribute("i8", int8_t{-128}, ffi::kS8)
      .Attribute("u8", uint8_t{255}, ffi::kU8)
      .Attribute("i16", int16_t{-32768}, ffi::kS16)
      .Attribute("u16", uint16_t{65535}, ffi::kU16)
      .Attribute("i32", std::numeric_limits<int32_t>::min(), ffi::kS32)
      .Attribute("u32", std::numeric_limits<uint32_t>::max(), ffi::kU32)
      .Attribute("i64", std::numeric_limits<int64_t>::min(), ffi::kS64)
      .Attribute("u64", std::numeric_limits<uint64_t>::max(), ffi::kU64)
      .Attribute("f32", 1.5f, ffi::kF32)
      .Attribute("f64", -2.5, ffi::kF64);
  EXPECT_EQ(call.Call(Describe(), "kernix_handler_numbers"), "");
  EXPECT_STREQ(text,
               "1 -128 255 -32768 65535 -2147483648 4294967295 -9223372036854775808 18446744073709551615 1.5 -2.5");
}

TEST_F(HandlerTest, ConvertsIntegersThatFit) {
  EXPECT_EQ(With("small", int64_t{-128}, ffi::kS64), "-128");
  EXPECT_EQ(With("small", uint8_t{127}, ffi::kU8), "127");
  EXPECT_EQ(With("small", true, ffi::kPred), "1");
  EXPECT_EQ(With("big", int64_t{5}, ffi::kS64), "5");
  EXPECT_EQ(With("flag", int64_t{1}, ffi::kS64), "1");
  EXPECT_EQ(With("half", uint16_t{0x3c00}, ffi::kU16, "h"), "3c00");
  for (const std::string& error :
       {With("small", int64_t{128}, ffi::kS64), With("small", int64_t{-129}, ffi::kS64),
        With("small", uint8_t{128}, ffi::kU8), With("small", std::numeric_limits<uint64_t>::max(), ffi::kU64)}) {
    EXPECT_EQ(error, "3: small: attribute 'x' (int8) is out of range");
  }
  EXPECT_EQ(With("big", int64_t{-1}, ffi::kS64), "3: big: attribute 'x' (uint64) is out of range");
  EXPECT_EQ(With("flag", int64_t{2}, ffi::kS64), "3: flag: attribute 'x' (bool) is out of range");
}

TEST_F(HandlerTest, ConvertsWholeRealsToIntegers) {
  EXPECT_EQ(With("small", -128.0, ffi::kF64), "-128");
  EXPECT_EQ(With("small", -0.0f, ffi::kF32), "0");
  EXPECT_EQ(With("flag", 1.0, ffi::kF64), "1");
  EXPECT_EQ(With("big", 9007199254740992.0, ffi::kF64), "9007199254740992");
  EXPECT_EQ(With("small", 1.5f, ffi::kF32), "3: small: attribute 'x' (int8) must be a whole number");
  EXPECT_EQ(With("flag", 2.0, ffi::kF64), "3: flag: attribute 'x' (bool) is out of range");
  for (const double wrong : {128.0, 1e300, -9223372036854775808.0, std::nan("")}) {
    EXPECT_EQ(With("small", wrong, ffi::kF64), "3: small: attribute 'x' (int8) is out of range") << wrong;
  }
}

TEST_F(HandlerTest, ConvertsRealsThatFit) {
  EXPECT_EQ(With("real", 0.1, ffi::kF64), "0.100000001");
  EXPECT_EQ(With("real", int64_t{-3}, ffi::kS64), "-3");
  EXPECT_EQ(With("real", std::numeric_limits<double>::infinity(), ffi::kF64), "inf");
  EXPECT_EQ(With("real", std::nan(""), ffi::kF64), "nan");
  EXPECT_EQ(With("real", 3.4028234663852886e38, ffi::kF64), "3.40282347e+38");
  for (const std::string& error :
       {With("real", 3.4028236e38, ffi::kF64), With("real", int64_t{(1 << 24) + 1}, ffi::kS64),
        With("real", std::numeric_limits<int64_t>::max(), ffi::kS64)}) {
    EXPECT_EQ(error, "3: real: attribute 'x' (float32) is out of range");
  }
}

TEST_F(HandlerTest, RefusesAttributesOfAnotherKind) {
  EXPECT_EQ(With("small", int64_t{1}, ffi::kC64), "3: small: attribute 'x' (int8) cannot be made of complex64");
  EXPECT_EQ(With("real", int64_t{0}, ffi::kC64), "3: real: attribute 'x' (float32) cannot be made of complex64");
  EXPECT_EQ(With("half", int64_t{1}, ffi::kS64, "h"),
            "3: half: attribute 'h' (float16) must be passed as its bits, an np.uint16, not int64");
  EXPECT_EQ(With("real", 1.0f, ffi::kF32, "y"), Misfit("3: real: attribute 'x' (float32) is missing"));
  char text[256] = {};
  FakeCall string, extra;
  EXPECT_EQ(string.Result(text, {256}, ffi::kU8).StringAttribute("x").Call(Describe(), "kernix_handler_real"),
            "3: real: attribute 'x' (float32) must be a scalar");
  extra.Result(text, {256}, ffi::kU8).Attribute("a", 1.0f, ffi::kF32).Attribute("x", 1.0f, ffi::kF32);
  EXPECT_EQ(extra.Call(Describe(), "kernix_handler_real"), Misfit("3: real: has no attribute 'a'"));
}

TEST_F(HandlerTest, PassesStreamsAsIntegerOrPointer) {
  void* library = workshop_.Open(R"(
#include "brainevent/common.h"
struct CUstream_st;
using cudaStream_t = CUstream_st*;
// @BE integer ret stream
void integer(BE::Tensor out, int64_t stream) { *out.data_ptr<int64_t>() = stream; }
// @BE pointer
void pointer(BE::Tensor& out, cudaStream_t s) { *out.data_ptr<int64_t>() = reinterpret_cast<int64_t>(s); }
)");
  for (const char* symbol : {"kernix_handler_integer", "kernix_handler_pointer"}) {
    int64_t seen = -1;
    void* stream = &seen;
    EXPECT_EQ(FakeCall().Result(&seen, {1}, ffi::kS64).Stream(stream).Call(library, symbol), "");
    EXPECT_EQ(seen, reinterpret_cast<int64_t>(stream));
    // The CPU has no stream: XLA's error is destroyed, and the kernel gets a null stream.
    FakeCall cpu;
    EXPECT_EQ(cpu.Result(&seen, {1}, ffi::kS64).Call(library, symbol), "");
    EXPECT_EQ(seen, 0);
    EXPECT_EQ(cpu.created(), 1);
    EXPECT_EQ(cpu.destroyed(), 1);
  }
}

TEST_F(HandlerTest, ACudaHandlerFailsWithoutAStream) {
  const std::string path = workshop_.path() + "/cuda.so";
  const std::string unit =
      Generate("k.cu", "// @BE f\nvoid f(BE::Tensor o, int64_t stream) { (void)o, (void)stream; }", v1::LANGUAGE_CUDA);
  ASSERT_EQ(workshop_.Compile("c++", unit, {workshop_.HandlerRuntime(), "-std=c++17", "-fPIC", "-shared", "-o", path})
                .exit_code,
            0);
  int64_t out = 0;
  FakeCall call;
  EXPECT_EQ(call.Result(&out, {1}, ffi::kS64).Call(dlopen(path.c_str(), RTLD_NOW), "kernix_handler_f"),
            "12: no stream on this platform");
  EXPECT_EQ(call.destroyed(), 0);  // XLA owns the error that a handler returns
}

TEST_F(HandlerTest, TurnsExceptionsIntoErrors) {
  void* library = workshop_.Open(R"(
#include "brainevent/common.h"
// @BE thrower
void thrower(BE::Tensor out, int what) {
  if (what == 0) BE_CHECK(out.ndim() == 2) << "got " << out.ndim() << " of " << out.dtype();
  if (what == 1) throw std::runtime_error("mine");
  if (what == 2) throw 5;
  if (what == 3) out.shape(1);
  if (what == 4) BE_DISPATCH_INTEGRAL(out.dtype(), T, { static_cast<void>(T{}); });
  if (what == 5) throw BE::CheckError(std::string("text"));
  struct Own {};
  if (what == 6) throw Own{};
  if (what == 7) throw "words";
  if (what == 8) throw std::string("a string\xe9");
  if (what == 9) throw std::string("a\0b", 3);
  if (what == 10) throw std::string_view("a\0b", 3);
  if (what == 11) BE_CHECK(what < 0) << std::string("a\0b", 3) << '\0';
}
)");
  const auto thrown = [&](int64_t what) {
    float out[1] = {};
    FakeCall call;
    return call.Result(out, {1}, ffi::kF32).Attribute("what", what, ffi::kS64).Call(library, "kernix_handler_thrower");
  };
  EXPECT_EQ(thrown(0), "13: thrower: check failed at kernel.cpp:5: out.ndim() == 2: got 1 of float32");
  EXPECT_EQ(thrown(1), "13: thrower: threw std::runtime_error: mine");
  EXPECT_EQ(thrown(2), "13: thrower: threw the int 5");
  EXPECT_EQ(thrown(3), "13: thrower: BE::Tensor has no axis 1");
  EXPECT_EQ(
      thrown(4),
      "13: thrower: check failed at kernel.cpp:9: BE_DISPATCH_INTEGRAL: unsupported dtype float32: out.dtype() must be "
      "one of bool, int8 to int64, uint8 to uint64");
  EXPECT_EQ(thrown(5), "13: thrower: text");
  EXPECT_THAT(thrown(6),
              AllOf(StartsWith("13: thrower: threw thrower("), testing::HasSubstr("::Own, which is no std::excep")));
  EXPECT_EQ(thrown(7), "13: thrower: threw a text: words");
  EXPECT_EQ(thrown(8), "13: thrower: threw a std::string: a string\xEF\xBF\xBD");
  EXPECT_EQ(thrown(9), "13: thrower: threw a std::string: a\\0b");
  EXPECT_EQ(thrown(10), "13: thrower: threw a std::string_view: a\\0b");
  EXPECT_THAT(thrown(11), testing::HasSubstr("what < 0: a\\0b\\0"));
  EXPECT_EQ(thrown(12), "");
}

TEST_F(HandlerTest, NamesTheModuleThatTheCallerSays) {
  void* library = workshop_.Open(R"(
#include "brainevent/internal/ffi_abi.h"
// @BE f
void f(BE::Tensor) { BE_CHECK(false) << "no"; }
extern "C" kernix_ffi_abi::Error* kernix_named_kernix_handler_f(kernix_ffi_abi::CallFrame*, const char*);
extern "C" __attribute__((visibility("default"))) kernix_ffi_abi::Error* named(kernix_ffi_abi::CallFrame* frame) {
  return kernix_named_kernix_handler_f(frame, "m");
}
)");
  float out[1] = {};
  const auto call = [&](const char* symbol) { return FakeCall().Result(out, {1}, ffi::kF32).Call(library, symbol); };
  EXPECT_EQ(call("named"), "13: m.f: check failed at kernel.cpp:4: false: no");
  EXPECT_EQ(call("kernix_handler_f"), "13: f: check failed at kernel.cpp:4: false: no");
}

TEST_F(HandlerTest, CutsLongMessagesOff) {
  void* library = workshop_.Open("// @BE f\nvoid f(BE::Tensor) { throw std::runtime_error(std::string(5000, 'x')); }");
  float out[1] = {};
  EXPECT_THAT(FakeCall().Result(out, {1}, ffi::kF32).Call(library, "kernix_handler_f"),
              AllOf(StartsWith("13: f: threw std::runtime_error: xxxx"), testing::SizeIs(testing::Lt(1000u))));
}

}  // namespace
}  // namespace kernix::language
