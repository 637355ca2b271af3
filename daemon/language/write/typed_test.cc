// SPDX-License-Identifier: Apache-2.0
//
// Typed parameters, in handlers that the real compilers have built.
#include "common/base/strings.h"
#include "tests/support/kernel_runner.h"

namespace kernix::language {
namespace {

namespace ffi = kernix_ffi_abi;
using testing::HasSubstr;

constexpr char kKernels[] = R"(
#include "brainevent/common.h"
#include <complex>
#include <type_traits>
static_assert(std::is_trivially_copyable_v<BE::In<float>> && std::is_trivially_copyable_v<BE::Out<bool, 2>>);
static_assert(sizeof(BE::In<float, 1>) <= 32);

// @BE add
void add(BE::In<float> x, const BE::In<float, 2>& w, BE::Out<float> y) {
  for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i] + w(i, 1);
}
// @BE shapes
void shapes(BE::In<int32_t> x, const BE::Out<int64_t, 1> y) {
  int64_t sum = 0;
  for (int element : x) sum += element;
  y(0) = sum, y[1] = x.ndim(), y[2] = x.shape(0), y[3] = x.shape(1), y(4) = x.size(), y(5) = x(1, 2), y(6) = x.empty();
}
// @BE scalar
void scalar(BE::In<double, 0> x, BE::Out<double> y) { y() = x() * 2; }
// @BE types
void types(BE::In<BE::float16_t> a, BE::In<std::complex<float>> b, BE::In<BE::complex128_t, 1> c, BE::In<bool> d,
           BE::Out<unsigned char> y) {
  y[0] = float(a[0]) + b[0].imag() + c(0).real + d[0];
}
struct Half { uint16_t bits; };
// @BE declared arg:float16[1] ret
void declared(const BE::In<Half, 1>& x, BE::Out<float> y) { y[0] = x(0).bits; }
// @BE generic arg:float32[1] ret
void generic(const BE::Tensor x, BE::Out<float> y) { y[0] = x.data_ptr<float>()[0]; }
// @BE around
void around(BE::In<float> a, BE::Span<const BE::Tensor> xs, BE::In<int8_t> z, BE::Out<float> y) { y[0] = a[0] + z[0] + xs.size(); }
// @BE with_scratch arg ret scratch:arg0.numel()
void with_scratch(BE::In<float> x, BE::Out<float> y, BE::Scratch s) { y[0] = x[0] + s.size(); }
)";

class TypedTest : public testing::Test {
 protected:
  static std::string Run(FakeCall& call, const std::string& function) {
    static Workshop workshop;
    static void* library = workshop.Open(kKernels);
    return call.Call(library, "kernix_handler_" + function);
  }

  // The compiler's output for a function, which must not compile.
  static std::string Refusal(const std::string& source) {
    Workshop workshop;
    const Outcome outcome = workshop.Compile("c++", Generate("k.cpp", source), {"-std=c++17", "-fsyntax-only"});
    EXPECT_NE(outcome.exit_code, 0) << source;
    return outcome.output;
  }

  std::string Add(std::vector<int64_t> x, uint32_t x_type, std::vector<int64_t> w, uint32_t y_type = ffi::kF32) {
    FakeCall call;
    call.Argument(x_, std::move(x), x_type).Argument(w_, std::move(w), ffi::kF32).Result(y_, {2}, y_type);
    return Run(call, "add");
  }

  float x_[2] = {1, 2}, w_[4] = {10, 20, 30, 40}, y_[2] = {};
};

TEST_F(TypedTest, ArraysIndexIterateAndKnowTheirShape) {
  EXPECT_EQ(Add({2}, ffi::kF32, {2, 2}), "");
  EXPECT_THAT(y_, testing::ElementsAre(21, 42));
  int32_t x[6] = {1, 2, 3, 4, 5, 6};
  int64_t y[7] = {};
  FakeCall shapes;
  EXPECT_EQ(Run(shapes.Argument(x, {2, 3}, ffi::kS32).Result(y, {7}, ffi::kS64), "shapes"), "");
  EXPECT_THAT(y, testing::ElementsAre(21, 2, 2, 3, 6, 6, 0));
  FakeCall flat;
  EXPECT_THAT(Run(flat.Argument(x, {6}, ffi::kS32).Result(y, {7}, ffi::kS64), "shapes"),
              HasSubstr("the array has no axis 1"));
  double one = 4, two = 0;
  FakeCall scalar;
  EXPECT_EQ(Run(scalar.Argument(&one, {}, ffi::kF64).Result(&two, {}, ffi::kF64), "scalar"), "");
  EXPECT_EQ(two, 8);
}

TEST_F(TypedTest, EveryCallIsChecked) {
  EXPECT_EQ(Add({2}, ffi::kS32, {2, 2}), Misfit("3: add: argument 0 (x) takes float32, got int32"));
  EXPECT_EQ(Add({2}, ffi::kF32, {5}), Misfit("3: add: argument 1 (w) takes float32[2] (2 dimensions), got float32[5]"));
  EXPECT_EQ(Add({2}, ffi::kF32, {2, 1, 2}),
            "3: add: argument 1 (w) takes float32[2] (2 dimensions), got float32[2,1,2]. If jax.vmap has added a "
            "dimension: vmap_method=\"sequential\" calls the function without it");
  EXPECT_EQ(Add({2}, ffi::kF32, {}), Misfit("3: add: argument 1 (w) takes float32[2] (2 dimensions), got float32[]"));
  EXPECT_EQ(Add({2}, ffi::kF32, {2, 2}, ffi::kF64), Misfit("3: add: result 0 (y) takes float32, got float64"));
  EXPECT_THAT(y_, testing::ElementsAre(0, 0));
  FakeCall none;
  EXPECT_EQ(Run(none, "add"), Misfit("3: add: expected 2 arguments, got 0"));
  const std::vector<int64_t> longest(8, INT64_MAX);
  EXPECT_THAT(Add({2}, ffi::kF32, longest), HasSubstr("9223372036854775807]"));
}

TEST_F(TypedTest, TakesEveryKindOfElement) {
  const uint16_t half = 0x4000;  // 2
  const float complex[2] = {0, 3};
  const double wide[2] = {4, 0};
  const bool yes = true;
  uint8_t y = 0;
  FakeCall call;
  call.Argument(const_cast<uint16_t*>(&half), {1}, ffi::kF16).Argument(const_cast<float*>(complex), {1}, ffi::kC64);
  call.Argument(const_cast<double*>(wide), {1}, ffi::kC128).Argument(const_cast<bool*>(&yes), {1}, ffi::kPred);
  EXPECT_EQ(Run(call.Result(&y, {1}, ffi::kU8), "types"), "");
  EXPECT_EQ(y, 10);
}

TEST_F(TypedTest, WorksBesideTheOtherParameters) {
  FakeCall generic, bad;
  EXPECT_EQ(Run(generic.Argument(x_, {2}, ffi::kF32).Result(y_, {1}, ffi::kF32), "generic"), "");
  EXPECT_EQ(y_[0], 1);
  EXPECT_EQ(Run(bad.Argument(x_, {2}, ffi::kS32).Result(y_, {1}, ffi::kF32), "generic"),
            Misfit("3: generic: argument 0 (x) takes float32[1] (1 dimension), got int32[2]"));
  int8_t z = 5;
  FakeCall around, last;
  around.Argument(x_, {2}, ffi::kF32).Argument(x_, {2}, ffi::kS32).Argument(&z, {1}, ffi::kS8);
  EXPECT_EQ(Run(around.Result(y_, {1}, ffi::kF32), "around"), "");
  EXPECT_EQ(y_[0], 7);
  last.Argument(x_, {2}, ffi::kF32).Argument(x_, {2}, ffi::kS32).Argument(x_, {1}, ffi::kF32);
  EXPECT_EQ(Run(last.Result(y_, {1}, ffi::kF32), "around"),
            Misfit("3: around: argument 2 (z) takes int8, got float32"));
  FakeCall scratch;
  EXPECT_EQ(Run(scratch.Argument(x_, {2}, ffi::kF32).Result(y_, {1}, ffi::kF32), "with_scratch"), "");
  EXPECT_EQ(y_[0], 3);
}

TEST_F(TypedTest, MistakesDoNotCompile) {
  const std::string begin = "#include \"brainevent/common.h\"\n// @BE f";
  EXPECT_THAT(Refusal(begin + "\nvoid f(BE::In<float> x, BE::Out<float> y) { x[0] = 1; }"), HasSubstr("read-only"));
  EXPECT_THAT(Refusal(begin + "\nvoid f(BE::In<float, 2> x, BE::Out<float> y) { y[0] = x(0); }"),
              HasSubstr("no match for call to '(BE::In<float, 2>) (int)'"));
  // Where the signature cannot be read, the compiler compares it with the tokens.
  const std::string hidden =
      "void f(\n#if __SIZEOF_INT__ > 1\nBE::In<double, 2> x\n#endif\n, BE::Out<float> y) { y[0] = x(0, 0); }";
  EXPECT_THAT(Refusal(begin + " arg:float32[2] ret:float32\n" + hidden), HasSubstr("another element type than"));
  EXPECT_THAT(Refusal(begin + " arg:float64 ret:float32\n" + hidden), HasSubstr("another number of dimensions than"));
  EXPECT_THAT(
      Refusal("#include \"brainevent/common.h\"\nstruct Vec3 { float x, y, z; };\n"
              "// @BE f arg:float32 ret:float32\nvoid f(BE::In<Vec3> from, BE::Out<float> y) { y[0] = from[0].x; }"),
      HasSubstr("'from' of f: the token arg:float32 has another element type than this parameter"));
}

TEST_F(TypedTest, CompilesUnderNvcc) {
  const std::optional<std::string> nvcc = FindNvcc();
  if (!nvcc.has_value()) GTEST_SKIP() << "no nvcc";
  constexpr char kSource[] = R"(
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void kernel(BE::In<__half> x, BE::In<float, 2> w, BE::Out<nv_bfloat16> y) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < y.size()) y[i] = __half2float(x[i]) * w(i, 0) + static_cast<float>(x.shape(0));
}
// @BE launch
void launch(BE::In<__half> x, BE::In<float, 2> w, BE::Out<nv_bfloat16> y, cudaStream_t stream) {
  kernel<<<1, 32, 0, stream>>>(x, w, y);
}
)";
  Workshop workshop;
  const Outcome outcome = workshop.Compile(
      *nvcc, Generate("k.cu", kSource, v1::LANGUAGE_CUDA),
      {"-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra", "-c", "-o", "x.o"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

}  // namespace
}  // namespace kernix::language
