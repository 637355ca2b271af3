// SPDX-License-Identifier: Apache-2.0
//
// The headers that kernels include, compiled by the compilers of this machine.
#include <cmath>
#include <cstdlib>

#include "common/base/strings.h"
#include "daemon/language/write/translation_unit.h"
#include "tests/support/kernel_runner.h"

namespace kernix::language {
namespace {

namespace ffi = kernix_ffi_abi;
using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Uses everything that the headers offer, in host code.
constexpr char kEverything[] = R"(
#include "brainevent/common.h"
#include "brainevent/check.h"
#include "brainevent/dispatch.h"
#include "brainevent/dtypes.h"
#include "brainevent/float8.h"
#include "brainevent/tensor.h"

template <typename T>
void Touch(const BE::Tensor& t) { static_cast<void>(t.data_ptr<T>()); }

// @BE everything
void everything(const BE::Tensor a, BE::Tensor o) {
  static_assert(BE::kMaxDim == 8 && sizeof(BE::complex64_t) == 8 && sizeof(BE::float16_t) == 2, "");
  const long long big = a.numel();
  if (big > 0)
    BE_CHECK(a.is_contiguous()) << "text" << 'c' << 1 << 2u << 3l << 4ul << 5ll << 6ull << 0.5f << 0.25 << true
                                << a.dtype() << static_cast<const void*>(&a)
                                << size_t{7} << int8_t{8} << std::string("s");
  else
    BE_CHECK(o.numel() == 0);
  BE_DISPATCH_FLOATING(a.dtype(), T, { Touch<T>(a); });
  BE_DISPATCH_FLOATING_AND_HALF(a.dtype(), T, {
    T sum = 0;
    sum += *a.data_ptr<T>();
    *o.data_ptr<T>() = sum * sum;
  });
  BE_DISPATCH_INTEGRAL(a.dtype(), T, { Touch<T>(a); });
  BE_DISPATCH_COMPLEX(a.dtype(), T, { Touch<T>(a); });
  BE_DISPATCH_ALL_TYPES(a.dtype(), T, { Touch<T>(a); });
  BE_DISPATCH_ALL(a.dtype(), T, { Touch<T>(a); });
  BE_DISPATCH_EVERYTHING(a.dtype(), T, { Touch<T>(a); });
  BE_DISPATCH_FLOAT8(a.dtype(), T, {
    T sum = 0;
    sum += *a.data_ptr<T>();
    *o.data_ptr<T>() = sum * sum;
  });
  BE_DISPATCH_CSR_INDPTR(a.dtype(), I, { Touch<I>(a); });
  BE_DISPATCH_SIGNED_INDEX(a.dtype(), I, { BE_DISPATCH_FLOATING(o.dtype(), T, { Touch<I>(a); Touch<T>(o); }); });
  BE_DISPATCH_SIGNED_INDEX_PAIR(a.dtype(), o.dtype(), I, J, { Touch<I>(a), Touch<J>(o); });
  BE_CHECK_CSR_INDICES_INT32(a);
  static_cast<void>(BE::Tensor(nullptr, a.shape_ptr(), a.ndim(), BE::DType::Int8).numel_checked_int());
  static_cast<void>(a.size(0) + a.stride(0) + a.strides_ptr()[0] + static_cast<int64_t>(a.nbytes()));
  static_cast<void>(a.data());
}
)";

class KernelHeadersTest : public testing::Test {
 protected:
  Workshop workshop_;
};

TEST_F(KernelHeadersTest, CompileWithoutWarningsInEveryDialect) {
  for (const char* compiler : {"g++", "clang++"}) {
    if (RunProgram({compiler, "--version"}, workshop_.path()).exit_code != 0) continue;
    for (const char* standard : {"-std=c++17", "-std=gnu++20"}) {
      const Outcome outcome = workshop_.Compile(compiler, Generate("k.cpp", kEverything),
                                                {standard, "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion",
                                                 "-Wno-sign-conversion", "-Werror", "-c", "-o", "x.o"});
      EXPECT_EQ(outcome.exit_code, 0) << compiler << " " << standard << "\n" << outcome.output;
    }
  }
}

TEST_F(KernelHeadersTest, EachStandsAlone) {
  for (const GeneratedFile& header : KernelHeaders()) {
    if (header.path == "brainevent/ffi_compat.h") continue;  // needs XLA's headers
    if (header.path == "compat/cuda_common.h") continue;     // CUDA; builder_test compiles it
    // CUDA; launch_test compiles them
    if (header.path.ends_with("/launch.h") || header.path.ends_with("/tensor_map.h")) continue;
    const Outcome outcome =
        workshop_.Compile("c++", "#include \"" + header.path + "\"\n#include \"" + header.path + "\"\n",
                          {"-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"});
    EXPECT_EQ(outcome.exit_code, 0) << header.path << "\n" << outcome.output;
  }
}

// The reason for these headers is what they do not include.
TEST_F(KernelHeadersTest, IncludeNoHeavyStandardHeader) {
  const Outcome outcome = workshop_.Compile("c++",
                                            Generate("k.cpp",
                                                     "#include \"brainevent/common.h\"\n// @BE f\n"
                                                     "void f(BE::Tensor o, float x, int64_t stream) {}"),
                                            {"-std=c++17", "-M"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* header : {"/stdexcept", "/bits/basic_string.h", "/iostream", "/exception_ptr.h", "/type_traits",
                             "/cmath", "/utility", "/stdio.h", "/stdlib.h"}) {
    EXPECT_THAT(outcome.output, Not(HasSubstr(header)));
  }
}

TEST_F(KernelHeadersTest, CompileWithoutExceptions) {
  const Outcome outcome = workshop_.Compile("c++", Generate("k.cpp", kEverything),
                                            {"-std=c++17", "-fno-exceptions", "-fno-rtti", "-c", "-o", "x.o"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

// Kernels rely on headers that the reference's ffi.h happened to include.
TEST_F(KernelHeadersTest, StandardNamesCompileUnasked) {
  const std::vector<std::string> bodies = {
      "std::vector<std::string> v; v.push_back(std::to_string(1));",
      "std::optional<int> o; std::unordered_map<int, int> m; m[1] = o.value_or(2);",
      "std::function<int(int)> f = [](int x) { return x; }; std::array<int, 2> a{}; f(a[0]);",
      "auto t = std::make_tuple(1, 2.0); std::get<0>(t); std::variant<int, float> v; (void)v;",
      "std::complex<float> c(1, 2); std::abs(c); std::numeric_limits<float>::max();",
      "float x = std::sqrt(2.0f) + std::pow(2.0f, 3.0f) + std::max(1.0f, 2.0f) + sqrtf(4) + fabs(-1.0); (void)x;",
      "int a[4] = {3, 1, 2, 0}; std::sort(a, a + 4); std::swap(a[0], a[1]); std::accumulate(a, a + 4, 0);",
      "char b[4]; memset(b, 0, 4); std::memcpy(b, \"abc\", 4); printf(\"%s\", b); std::printf(\"%d\", INT_MAX);",
      "auto p = std::make_unique<int>(1); std::shared_ptr<int> q(std::move(p)); std::string_view s = \"x\"; (void)s;",
      "static std::mutex m; std::lock_guard<std::mutex> l(m); std::atomic<int> a{0}; ++a; std::once_flag o; (void)o;",
      "std::ostringstream s; s << 1; std::cout << s.str() << std::endl; std::cerr << FLT_MAX;",
      "try { BE_CHECK(false); } catch (const std::runtime_error& e) { puts(e.what()); }",
      "try { BE::Tensor(nullptr, nullptr, 9, BE::DType::Int8); } catch (const std::out_of_range&) { }",
      "static_assert(std::is_same_v<BE::internal::CountError, std::overflow_error>);",
      "static_assert(std::is_same_v<int, int> && std::is_floating_point<float>::value, \"\"); assert(true);",
      "auto start = std::chrono::steady_clock::now(); (void)start; free(malloc(1)); std::iota((int*)0, (int*)0, 0);",
  };
  for (size_t i = 0; i < bodies.size(); ++i) {
    const std::string name = StrCat("f", i);
    const std::string alone = StrCat("#include \"brainevent/common.h\"\n// @BE ", name, "\nvoid ", name,
                                     "(BE::Tensor) { ", bodies[i], " }\n");
    const Outcome outcome = workshop_.Compile("c++", Generate("k.cpp", alone), {"-std=c++17", "-fsyntax-only"});
    EXPECT_EQ(outcome.exit_code, 0) << bodies[i] << "\n" << outcome.output;
  }
}

TEST_F(KernelHeadersTest, DiagnosticsShowTheUsersLine) {
  workshop_.Write("kernix-source/mine.cpp",
                  "#include \"brainevent/common.h\"\n// @BE f\nvoid f(BE::Tensor o) {\n  int x = undeclared;\n}\n");
  const std::string text = Env::Posix().ReadFile(workshop_.path() + "/kernix-source/mine.cpp").value();
  const Outcome outcome = workshop_.Compile("c++", Generate("mine.cpp", text), {"-std=c++17", "-fsyntax-only"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("mine.cpp:4:11: error"));
  EXPECT_THAT(outcome.output, HasSubstr("int x = undeclared;"));
  EXPECT_THAT(outcome.output, HasSubstr("^~~~"));
}

TEST_F(KernelHeadersTest, AMismatchNamesTheFunction) {
  workshop_.Write("kernix-source/mine.cpp", "");
  const Outcome outcome = workshop_.Compile(
      "c++",
      Generate("mine.cpp", "struct S {};\nusing T = S;\n// @BE f ret attr.x:int32\nvoid f(BE::Tensor o, T x) {}\n"),
      {"-std=c++17", "-fsyntax-only"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("<handler of f>"));
}

// Half types store values and convert from and to float exactly as IEEE specifies.
TEST_F(KernelHeadersTest, SoftHalfTypesRoundAsIeeeSays) {
  void* library = workshop_.Open(R"(
#include "brainevent/common.h"
template <typename H>
float Run(float x) { H h = x; return h; }
// @BE f16
void f16(const BE::Tensor a, BE::Tensor o) { *o.data_ptr<float>() = Run<BE::float16_t>(*a.data_ptr<float>()); }
// @BE bf16
void bf16(const BE::Tensor a, BE::Tensor o) { *o.data_ptr<float>() = Run<BE::bfloat16_t>(*a.data_ptr<float>()); }
// @BE roundtrip
void roundtrip(const BE::Tensor, BE::Tensor o) {
  int64_t bad = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const BE::float16_t h{static_cast<uint16_t>(bits)};
    const BE::bfloat16_t b{static_cast<uint16_t>(bits)};
    const float hf = h, bf = b;
    if (hf == hf && BE::float16_t(hf).bits != bits) ++bad;
    if (bf == bf && BE::bfloat16_t(bf).bits != bits) ++bad;
    if (hf != hf && static_cast<float>(BE::float16_t(hf)) == 0) ++bad;
  }
  *o.data_ptr<int64_t>() = bad;
}
)");
  const auto rounded = [&](const char* symbol, float x) {
    float out = 0;
    EXPECT_EQ(FakeCall().Argument(&x, {}, ffi::kF32).Result(&out, {}, ffi::kF32).Call(library, symbol), "");
    return out;
  };
  const auto f16 = [&](float x) { return rounded("kernix_handler_f16", x); };
  const auto bf16 = [&](float x) { return rounded("kernix_handler_bf16", x); };
  EXPECT_EQ(f16(1.0f), 1.0f);
  EXPECT_EQ(f16(0x1.002p0f), 1.0f);           // a tie goes to even
  EXPECT_EQ(f16(0x1.006p0f), 0x1.008p0f);     // so does this one
  EXPECT_EQ(f16(0x1.002002p0f), 0x1.004p0f);  // just above a tie
  EXPECT_EQ(f16(65504.0f), 65504.0f);         // the largest
  EXPECT_EQ(f16(0x1.ffdffep15f), 65504.0f);
  EXPECT_EQ(f16(65520.0f), HUGE_VALF);
  EXPECT_EQ(f16(-1e10f), -HUGE_VALF);
  EXPECT_EQ(f16(0x1p-24f), 0x1p-24f);  // the smallest
  EXPECT_EQ(f16(0x1p-25f), 0.0f);      // half of it: a tie
  EXPECT_EQ(f16(0x1.000002p-25f), 0x1p-24f);
  EXPECT_EQ(f16(0x1.ff8p-15f), 0x1.ff8p-15f);  // the largest subnormal
  EXPECT_EQ(f16(0x1.fffp-15f), 0x1p-14f);      // rounds up to a normal number
  EXPECT_TRUE(std::isnan(f16(NAN)));
  EXPECT_EQ(bf16(0x1.01p0f), 1.0f);
  EXPECT_EQ(bf16(0x1.03p0f), 0x1.04p0f);
  EXPECT_EQ(bf16(0x1.010002p0f), 0x1.02p0f);
  EXPECT_EQ(bf16(0x1.fefffep127f), 0x1.fep127f);
  EXPECT_EQ(bf16(0x1.ffp127f), HUGE_VALF);
  EXPECT_EQ(bf16(-HUGE_VALF), -HUGE_VALF);
  EXPECT_TRUE(std::isnan(bf16(NAN)));
  float in = 0;
  int64_t bad = -1;
  EXPECT_EQ(
      FakeCall().Argument(&in, {}, ffi::kF32).Result(&bad, {}, ffi::kS64).Call(library, "kernix_handler_roundtrip"),
      "");
  EXPECT_EQ(bad, 0);
}

// A double that is near a tie of the short type is a tie as a float.
TEST_F(KernelHeadersTest, SoftShortFloatsRoundADoubleOnce) {
  void* library = workshop_.Open(R"(
#include "brainevent/common.h"
#include "brainevent/float8.h"
// @BE f
void f(BE::In<double> x, BE::Out<float> y) {
  y[0] = BE::float16_t(x[0]);
  y[1] = BE::bfloat16_t(static_cast<long double>(x[0]));
  const BE::float8_e4m3fn_t last = x[0];
  y[2] = last;
}
)");
  const auto rounded = [&](double x) {
    std::vector<float> out(3);
    EXPECT_EQ(
        FakeCall().Argument(&x, {1}, ffi::kF64).Result(out.data(), {3}, ffi::kF32).Call(library, "kernix_handler_f"),
        "");
    return out;
  };
  for (const double sign : {1.0, -1.0}) {
    const auto of = [&](double x) { return rounded(sign * x); };
    const auto s = static_cast<float>(sign);
    EXPECT_EQ(of(0x1.002p0 + 0x1p-40)[0], s * 0x1.004p0f);
    EXPECT_EQ(of(0x1.006p0 - 0x1p-40)[0], s * 0x1.004p0f);
    EXPECT_EQ(of(0x1p-25 + 0x1p-70)[0], s * 0x1p-24f);
    EXPECT_EQ(of(65520 - 0x1p-30)[0], s * 65504.0f);
    EXPECT_EQ(of(0x1.01p0 + 0x1p-40)[1], s * 0x1.02p0f);
    EXPECT_EQ(of(0x1.03p0 - 0x1p-40)[1], s * 0x1.02p0f);
    EXPECT_EQ(of(0x1.1p0 + 0x1p-40)[2], s * 0x1.2p0f);
    EXPECT_THAT(of(0x1.8p0), ElementsAre(s * 1.5f, s * 1.5f, s * 1.5f));
    EXPECT_THAT(of(1e300), ElementsAre(s * HUGE_VALF, s * HUGE_VALF, _));
    EXPECT_THAT(of(1e-300), ElementsAre(0, 0, 0));
    EXPECT_TRUE(std::isnan(of(NAN)[0]) && std::isnan(of(NAN)[1]) && std::isnan(of(NAN)[2]));
  }
}

TEST_F(KernelHeadersTest, MessagesPrintNumbers) {
  void* library = workshop_.Open(R"(
#include "brainevent/common.h"
// @BE f
void f(BE::Tensor, double x) {
  BE_CHECK(false) << x << ' ' << -9223372036854775807ll - 1 << ' ' << 18446744073709551615ull << ' '
                  << static_cast<const char*>(nullptr);
}
)");
  const auto printed = [&](double x) {
    float out[1] = {};
    FakeCall call;
    const std::string error =
        call.Result(out, {1}, ffi::kF32).Attribute("x", x, ffi::kF64).Call(library, "kernix_handler_f");
    const std::string tail = " -9223372036854775808 18446744073709551615 (null)";
    EXPECT_THAT(error, testing::EndsWith(tail));
    const size_t begin = error.rfind(": ") + 2;
    return error.substr(begin, error.size() - tail.size() - begin);
  };
  for (const char* text :
       {"0", "1", "-2.5", "0.1", "123456", "1e+06", "1.5e-07", "0.0001", "3.14159", "1e+300", "inf", "nan"}) {
    EXPECT_EQ(printed(std::strtod(text, nullptr)), text);
  }
  EXPECT_EQ(printed(9.9999996), "10");
}

// A kernel may use XLA's own API beside ours.
TEST_F(KernelHeadersTest, LiveBesideXlasOwnHeaders) {
  const std::optional<std::string> python = FindJaxPython();
  if (!python.has_value()) GTEST_SKIP() << "no Python with jaxlib: set KERNIX_TEST_PYTHON";
  const std::string xla = Evaluate(*python, "import jax; print(jax.ffi.include_dir())");
  const std::string source =
      "#include \"xla/ffi/api/ffi.h\"\n#include \"brainevent/common.h\"\n#include \"brainevent/ffi_compat.h\"\n"
      "namespace ffi = xla::ffi;\n// @BE f\nvoid f(const BE::Tensor a, BE::Tensor o) {}\n"
      "static ffi::Error Impl(ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> o) {\n"
      "  f(BE::internal::buffer_to_tensor(a), BE::internal::result_buffer_to_tensor(o));\n"
      "  return BE::xla_to_jkb_dtype(a.element_type()) == BE::DType::Float32 ? ffi::Error::Success() : "
      "ffi::Error::Internal(\"\");\n}\n"
      "XLA_FFI_DEFINE_HANDLER_SYMBOL(mine, Impl, ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());\n";
  const Outcome outcome =
      workshop_.Compile("c++", Generate("k.cpp", source), {"-I" + xla, "-std=c++17", "-fsyntax-only"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

TEST_F(KernelHeadersTest, CompileUnderNvcc) {
  const std::optional<std::string> nvcc = FindNvcc();
  if (!nvcc.has_value()) GTEST_SKIP() << "no nvcc here";
  const std::string device = R"(
__global__ void kernel(BE::Tensor a, BE::Tensor o) {
  BE_CHECK(a.ndim() == 1) << "expected " << 1 << ", got " << a.ndim() << a.dtype() << 0.5;
  BE_DISPATCH_FLOATING_AND_HALF(a.dtype(), T, { o.data_ptr<T>()[0] = a.data_ptr<T>()[a.shape(0) - 1]; });
  BE_DISPATCH_FLOAT8(a.dtype(), T, { o.data_ptr<T>()[0] = a.data_ptr<T>()[0] * 2; });
  BE_CUDA_CHECK(cudaSuccess);
}
// @BE launch
void launch(const BE::Tensor& a, BE::Tensor& o, cudaStream_t stream) {
  kernel<<<1, 1, 0, stream>>>(a, o);
  BE_CHECK_KERNEL_LAUNCH();
  BE_CHECK_KERNEL_LAUNCH_SYNC();
  BE_CUDA_CHECK(cudaGetLastError());
}
// @BE launch_integer arg ret stream
void launch_integer(const BE::Tensor a, BE::Tensor o, int64_t stream) {
  kernel<<<1, 1, 0, (cudaStream_t)stream>>>(a, o);
}
)";
  const Outcome outcome = workshop_.Compile(
      *nvcc, Generate("k.cu", kEverything + device, v1::LANGUAGE_CUDA),
      {"-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra", "-c", "-o", "x.o"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

}  // namespace
}  // namespace kernix::language
