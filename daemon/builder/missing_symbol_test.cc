// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/missing_symbol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

TEST(MissingSymbolTest, NamesTheLibrary) {
  EXPECT_EQ(AdviceForMissingSymbol("undefined reference to `cublasLtMatmul'"),
            "It is part of cuBLASLt: pass -lcublasLt in extra_ldflags");
  EXPECT_EQ(AdviceForMissingSymbol("ld.lld: error: undefined symbol: cublasCreate_v2"),
            "It is part of cuBLAS: pass -lcublas in extra_ldflags");
  EXPECT_THAT(AdviceForMissingSymbol("undefined reference to `cuLaunchKernel'"), HasSubstr("-lcuda"));
  EXPECT_THAT(AdviceForMissingSymbol("undefined reference to `omp_get_max_threads'"), HasSubstr("-fopenmp"));
  EXPECT_THAT(AdviceForMissingSymbol("undefined reference to `GOMP_parallel'"), HasSubstr("-fopenmp"));
}

TEST(MissingSymbolTest, SaysNothingOfOthers) {
  for (const char* error :
       {"undefined reference to `mine(int)'", "undefined reference to `cublas_of_mine(int)'",
        "undefined reference to `cuSolver::run'", "undefined reference to `cut'", "undefined reference to `cudaOdd'",
        "undefined reference to `", "undefined symbol: ", "multiple definition of `cublasCreate_v2'", ""}) {
    EXPECT_EQ(AdviceForMissingSymbol(error), "") << error;
  }
}

}  // namespace
}  // namespace kernix::build
