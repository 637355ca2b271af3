// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/failure_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/undefined_symbol.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

TEST(FailureAdviceTest, NamesTheLibraryOfASymbol) {
  EXPECT_EQ(AdviceForFailure("undefined reference to `cublasLtMatmul'"),
            "It is part of cuBLASLt: pass -lcublasLt in extra_ldflags");
  EXPECT_EQ(AdviceForFailure("ld.lld: error: undefined symbol: cublasCreate_v2"),
            "It is part of cuBLAS: pass -lcublas in extra_ldflags");
  for (const char* error : {"undefined reference to `deflateInit_'", "undefined symbol: inflate"}) {
    EXPECT_EQ(AdviceForFailure(error), "It is part of zlib: pass -lz in extra_ldflags") << error;
  }
  EXPECT_THAT(AdviceForFailure("undefined reference to `cuLaunchKernel'"), HasSubstr("-lcuda"));
  EXPECT_THAT(AdviceForFailure("undefined reference to `omp_get_max_threads'"), HasSubstr("-fopenmp"));
  EXPECT_THAT(AdviceForFailure("undefined reference to `GOMP_parallel'"), HasSubstr("-fopenmp"));
}

TEST(FailureAdviceTest, AnotherSymbolMustBeDefined) {
  for (const char* error :
       {"undefined reference to `mine(int)'", "undefined reference to `cublas_of_mine(int)'",
        "undefined reference to `cuSolver::run'", "undefined reference to `cut'", "undefined reference to `cudaOdd'",
        "undefined reference to `deflate_mine'", "undefined reference to `deflateMine'", "undefined symbol: nccl_mine",
        "undefined symbol: cublas"}) {
    EXPECT_EQ(AdviceForFailure(error), kDefineOrNameLibrary) << error;
  }
}

TEST(FailureAdviceTest, NamesTheWheelOfAHeaderOrALibrary) {
  constexpr char kCublas[] =
      "It is part of cuBLAS, which CUDA loads find: install the whole CUDA toolkit, or the wheel nvidia-cublas";
  for (const char* error :
       {"k.cu:1:10: fatal error: cublas_v2.h: No such file or directory",
        "k.cc:1:10: fatal error: 'cublas_v2.h' file not found", "cannot find -lcublas: No such file or directory",
        "cannot find -lcublas", "ld.lld: error: unable to find library -lcublas"}) {
    EXPECT_EQ(AdviceForFailure(error), kCublas) << error;
  }
}

TEST(FailureAdviceTest, SaysNothingOfOthers) {
  for (const char* error :
       {"undefined reference to `", "undefined symbol: ", "multiple definition of `cublasCreate_v2'", "",
        "k.cc:1:10: fatal error: mine.h: No such file or directory", "fatal error: ", "cannot find -lmine",
        "cannot find ", "k.cc:1:1: error: 'cublasCreate' was not declared"}) {
    EXPECT_EQ(AdviceForFailure(error), "") << error;
  }
}

}  // namespace
}  // namespace kernix::build
