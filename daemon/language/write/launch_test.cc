// SPDX-License-Identifier: Apache-2.0
//
// Handlers of __global__ functions, compiled by a real nvcc. tests/python/test_launch.py calls them.
#include "common/base/strings.h"
#include "tests/support/kernel_runner.h"

namespace kernix::language {
namespace {

using testing::HasSubstr;

class LaunchTest : public testing::Test {
 protected:
  void SetUp() override {
    nvcc_ = FindNvcc().value_or("");
    if (nvcc_.empty()) GTEST_SKIP() << "no nvcc";
  }

  Outcome Compile(const std::string& source) {
    return workshop_.Compile(
        nvcc_, Generate("k.cu", source, v1::LANGUAGE_CUDA),
        {"-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra", "-c", "-o", "x.o"});
  }

  std::string nvcc_;
  Workshop workshop_;
};

TEST_F(LaunchTest, CompilesWithoutWarnings) {
  const Outcome outcome = Compile(R"(
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include "brainevent/common.h"
// @BE pointers
extern "C" __global__ void pointers(const float* __restrict__ a, const __half* b, const bool* c, __nv_bfloat16* y,
                                    size_t n, bool flag, int64_t m) {
  if (flag) y[n] = __float2bfloat16(a[m] + __half2float(b[0]) + c[0]);
}
namespace a {
template <typename T, int kWidth>
__global__ void __launch_bounds__(32 * kWidth) sum(const T* x, T* y, unsigned char add) { y[0] = x[kWidth] + T(add); }
}  // namespace a
// @BE sum<double, 4>
// @BE views
static __global__ void views(BE::In<float, 2> x, const BE::Tensor z, BE::Out<float> y) { y[0] = x(0, 0) + float(z.ndim()); }
enum class Mode : unsigned char { kFast, kSlow };
// @BE values ret:float32 attr.m:int32 attr.h:float16 attr.f:float16 attr.b:bfloat16 attr.bits:float16
__global__ void values(float* y, Mode m, __half h, float f, const __nv_bfloat16 b, uint16_t bits) {
  y[0] = static_cast<float>(m) + __half2float(h) + f + __bfloat162float(b) + bits;
}
// @BE rows
__global__ void rows(const float (*x)[4], float y[][2]) { y[0][1] = x[1][3]; }
// @BE vectors arg:float32 arg ret:int32
__global__ void __cluster_dims__(2, 1, 1) vectors(const float4* x, const void* z, void* y) {
  *static_cast<int*>(y) = static_cast<int>(x[0].w) + (z == nullptr);
}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

// Where the signature cannot be read, the compiler compares it with the tokens.
TEST_F(LaunchTest, PointersThatTheTokensDoNotFitDoNotCompile) {
  const auto refusal = [this](const std::string& tokens, const std::string& first) {
    return Compile("// @BE f " + tokens + "\n__global__ void f(\n#if __SIZEOF_INT__ > 1\n" + first +
                   "\n#endif\n, float* y) { y[0] = x[0]; }")
        .output;
  };
  EXPECT_THAT(refusal("arg:float32 ret:float32", "const double* x"),
              HasSubstr("another element type than this pointer"));
  EXPECT_THAT(refusal("arg ret:float32", "const float* x"), HasSubstr("write the element type of this pointer"));
  EXPECT_THAT(refusal("ret:float32 ret:float32", "const float* x"), HasSubstr("through a pointer to const"));
}

}  // namespace
}  // namespace kernix::language
