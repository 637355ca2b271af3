// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/artifact_symbols.h"
#include "common/base/strings.h"
#include "daemon/builder/failure.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(FailureAdviceTest, NamesTheLibraryOfASymbol) {
  EXPECT_EQ(AdviceForFailure("undefined reference to `cublasLtMatmul'"),
            "It may be part of cuBLASLt: pass -lcublasLt in extra_ldflags; else define it");
  EXPECT_EQ(AdviceForFailure("ld.lld: error: undefined symbol: cublasCreate_v2"),
            "It may be part of cuBLAS: pass -lcublas in extra_ldflags; else define it");
  for (const char* error : {"undefined reference to `deflateInit_'", "undefined symbol: inflate"}) {
    EXPECT_EQ(AdviceForFailure(error), "It may be part of zlib: pass -lz in extra_ldflags; else define it") << error;
  }
  for (const char* name : {"cuLaunchKernel", "cuInit", "cuMemAlloc_v2", "cuTensorMapEncodeTiled", "cuGetErrorString"}) {
    EXPECT_THAT(AdviceForFailure(StrCat("undefined reference to `", name, "'")), HasSubstr("load the source as CUDA"));
  }
  EXPECT_THAT(AdviceForFailure("cannot find -lcuda: No such file or directory"), HasSubstr("load the source as CUDA"));
  EXPECT_THAT(AdviceForFailure("cannot find -l:libcuda.so.1: No such file or directory"),
              HasSubstr("load the source as CUDA"));
  EXPECT_THAT(AdviceForFailure("undefined reference to `cudaMalloc'"), HasSubstr("load the source as CUDA"));
  for (const char* name : {"omp_get_max_threads", "omp_set_lock", "omp_target_alloc"}) {
    EXPECT_THAT(AdviceForFailure(StrCat("undefined reference to `", name, "'")), HasSubstr("-fopenmp"));
  }
  EXPECT_THAT(AdviceForFailure("undefined reference to `GOMP_parallel'"), HasSubstr("-fopenmp"));
}

TEST(FailureAdviceTest, AnotherSymbolMustBeDefined) {
  for (const char* error :
       {"undefined reference to `mine(int)'", "undefined reference to `cublas_of_mine(int)'",
        "undefined reference to `cuSolver::run'", "undefined reference to `cut'",
        "undefined reference to `deflate_mine'", "undefined reference to `deflateMine'", "undefined symbol: nccl_mine",
        "undefined symbol: cublas", "undefined reference to `omp_num_blocks'", "undefined reference to `omp_get_mine'",
        "undefined reference to `cuMine'", "undefined reference to `cuMemory'",
        "undefined reference to `cuDeviceful'"}) {
    EXPECT_THAT(AdviceForFailure(error), StartsWith(kDefineOrNameLibrary)) << error;
    EXPECT_THAT(AdviceForFailure(error), HasSubstr("-Wl,--gc-sections")) << error;
  }
}

// The link has the library, and it does not define that.
TEST(FailureAdviceTest, NoFlagIsAskedForThatIsThere) {
  const std::pair<const char*, const char*> cases[] = {
      {"cublasMine", "-lcublas"}, {"GOMP_mine", "-fopenmp"}, {"inflate", "-lz"}, {"cudaOdd", "-lcudart_static"}};
  for (const auto& [symbol, flag] : cases) {
    const std::string error = StrCat("undefined reference to `", symbol, "'");
    EXPECT_THAT(AdviceForFailure(error, {"g++", flag}), StartsWith(kDefineOrNameLibrary)) << symbol;
  }
}

TEST(FailureAdviceTest, SaysWhatDeviceCodeNeeds) {
  const std::pair<const char*, const char*> cases[] = {
      {"ptxas fatal   : Unresolved extern function '_Z2dmf'", "That is dm: define it"},
      {"ptxas fatal   : Unresolved extern function '_ZN1a2bcEf'", "That is a::bc: "},
      {"ptxas fatal   : Unresolved extern function 'plain'", "That is plain: "},
      {"ptxas fatal   : Unresolved extern function '_Z99999999999999999999999x'", "That is x: "},
      {"k.cu(3): error: kernel launch from __device__ or __global__ functions requires separate compilation mode",
       "-rdc=true"},
      {"ptxas unit.ptx, line 27; error   : Instruction 'wgmma.fence' not supported on .target 'sm_90'", "\"sm_90a\""}};
  for (const auto& [error, words] : cases) EXPECT_THAT(AdviceForFailure(error), HasSubstr(words)) << error;
}

TEST(FailureAdviceTest, SaysHowAToolGetsItsLibraries) {
  EXPECT_THAT(AdviceForFailure("/opt/as: error while loading shared libraries: libbfd-2.42.so: cannot open"),
              HasSubstr("to a script that sets it and runs the compiler"));
}

TEST(FailureAdviceTest, NamesTheWheelOfAHeaderOrALibrary) {
  constexpr char kCublas[] =
      "It is part of cuBLAS, which CUDA loads search for: install the whole CUDA toolkit, or the wheel nvidia-cublas";
  for (const char* error :
       {"k.cu:1:10: fatal error: cublas_v2.h: No such file or directory",
        "k.cc:1:10: fatal error: 'cublas_v2.h' file not found", "cannot find -lcublas: No such file or directory",
        "cannot find -lcublas", "ld.lld: error: unable to find library -lcublas"}) {
    EXPECT_EQ(AdviceForFailure(error), kCublas) << error;
  }
}

TEST(FailureAdviceTest, SaysHowManyIndicesAnArrayTakes) {
  for (const char* error :
       {"k:3:9: error: no match for call to '(BE::In<float, 2>) (int)'",
        "k:3:9: error: no match for call to '(const BE::Out<std::complex<float>, 2>) (int, std::pair<int, int>)'",
        "k:3:9: error: no matching function for call to object of type 'const BE::In<float, 2>'",
        "k(3): error: no instance of function \"BE::internal::Indexed<T, kRank, "
        "BE::internal::Axes<kAxes...>>::operator() "
        "[with T=const float, kRank=2, kAxes=<0, 1>]\" matches the argument list"}) {
    EXPECT_EQ(AdviceForFailure(error), "It takes as many indices as it has dimensions: 2") << error;
  }
}

TEST(FailureAdviceTest, SaysNothingOfOthers) {
  for (const char* error :
       {"undefined reference to `", "undefined symbol: ", "multiple definition of `cublasCreate_v2'", "",
        "k.cc:1:10: fatal error: mine.h: No such file or directory", "fatal error: ", "cannot find -lmine",
        "cannot find ", "k.cc:1:1: error: 'cublasCreate' was not declared",
        "k:3:9: error: no match for call to '(BE::In<float>) (int, std::pair<int, 2>)'",
        "k:3:9: error: no match for call to '(Mine<float, 2>) (int)'", "k:3:9: error: no match for call to 'BE::In<'",
        "k:3:9: error: cannot convert 'BE::In<float, 2>' to 'float'"}) {
    EXPECT_EQ(AdviceForFailure(error), "") << error;
  }
}

}  // namespace
}  // namespace kernix::build
