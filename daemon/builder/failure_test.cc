// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/artifact_symbols.h"
#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

struct Case {
  const char* output;
  const char* error;
};

TEST(FailureTest, SaysThatTheCompilerCrashed) {
  exec::Action action;
  action.step = "compile";
  action.argv = {"/usr/bin/g++"};
  const auto message = [&](int exit_code, const std::string& output) {
    exec::ActionResult result;
    result.exit_code = exit_code;
    result.output = output;
    return GetErrorDetail(StepFailure(action, result)).message();
  };
  EXPECT_TRUE(message(139, "").starts_with("compile failed: the compiler crashed (signal 11)"));
  EXPECT_TRUE(message(132, "").starts_with("compile failed: the compiler crashed (signal 4)"));
  EXPECT_EQ(message(3, ""), "compile failed: exit code 3 without a message");
  EXPECT_EQ(message(139, "k.cc:1: error: x"), "compile failed: k.cc:1: error: x");
  action.step = "handler";  // fails for the user's flags, and is nothing to the user
  EXPECT_EQ(message(1, "g++: error: x"), "compile failed: g++: error: x");
}

TEST(FailureTest, FindsTheFirstError) {
  const Case cases[] = {
      // GCC
      {"k.cpp: In function 'void f()':\nk.cpp:3:5: warning: unused\nk.cpp:4:7: error: 'x' was not declared\n    4 |   "
       "x;\n",
       "k.cpp:4:7: error: 'x' was not declared"},
      {"k.cpp:1:10: fatal error: nope.h: No such file or directory\ncompilation terminated.\n",
       "k.cpp:1:10: fatal error: nope.h: No such file or directory"},
      {"k.cpp: Assembler messages:\nk.cpp:4: Error: no such instruction: `foo'\n    4 |   asm(\"foo\");\n",
       "k.cpp:4: Error: no such instruction: `foo'"},
      {"k.cpp:3:6: error: variable or field 'f' declared void\n    3 | void f(BE::Inn<float> x)\nk.cpp:3:12: error: "
       "'Inn' "
       "is not a member of 'BE'; did you mean 'In'?\n",
       "k.cpp:3:12: error: 'Inn' is not a member of 'BE'; did you mean 'In'?"},
      {"k.cpp:3:6: error: variable or field 'f' declared void\n    3 | void f;\n",
       "k.cpp:3:6: error: variable or field 'f' declared void"},
      // nvcc
      {"k.cu(3): error: incomplete type \"void\" is not allowed\n  void f(BE::Inn<float> x)\nk.cu(3): error: namespace "
       "\"BE\" has no member \"Inn\"\n",
       "k.cu(3): error: namespace \"BE\" has no member \"Inn\""},
      {"k.cu(5): error: identifier \"foo\" is undefined\n    foo();\n    ^\n\n1 error detected in the compilation of "
       "\"unit.cu\".\n",
       "k.cu(5): error: identifier \"foo\" is undefined"},
      {"nvcc fatal   : Unsupported gpu architecture 'compute_10'\n",
       "nvcc fatal   : Unsupported gpu architecture 'compute_10'"},
      {"ptxas error   : Entry function uses too much shared data\n",
       "ptxas error   : Entry function uses too much shared data"},
      // ld, gold, lld
      {"/usr/bin/ld: unit.o: in function `f':\nunit.cc:(.text+0x5): undefined reference to `missing(int)'\ncollect2: "
       "error: ld returned 1 exit status\n",
       "undefined reference to `missing(int)'"},
      {"/usr/bin/ld: unrecognized option '--nope'\n/usr/bin/ld: use the --help option for usage information\ncollect2: "
       "error: ld returned 1 exit status\n",
       "unrecognized option '--nope'"},
      {"/usr/bin/ld: cannot find -lnope: No such file or directory\ncollect2: error: ld returned 1 exit status\n",
       "cannot find -lnope: No such file or directory"},
      {"ld.lld: error: undefined symbol: missing(int)\n>>> referenced by unit.cc\n",
       "ld.lld: error: undefined symbol: missing(int)"},
      {"/usr/bin/ld: l.a: file format not recognized\ncollect2: error: ld returned 1 exit status\n",
       "/usr/bin/ld: l.a: file format not recognized"},
      // The loader
      {"/opt/ld: error while loading shared libraries: libbfd.so: cannot open\ncollect2: error: ld returned 127 exit "
       "status\n",
       "/opt/ld: error while loading shared libraries: libbfd.so: cannot open"},
      // Unknown forms
      {"the compiler is not amused\n\n", "the compiler is not amused"},
      {"", ""},
  };
  for (const Case& c : cases) EXPECT_EQ(FirstError(c.output), c.error);
}

TEST(FailureTest, StepFailureCarriesAllThereIs) {
  exec::Action action;
  action.step = "link";
  action.argv = {"g++", "a b"};
  exec::ActionResult result;
  result.exit_code = 3;
  result.output = "x: error: y\n";
  const v1::ErrorDetail detail = GetErrorDetail(StepFailure(action, result));
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_EQ(detail.message(), "link failed: x: error: y");
  EXPECT_EQ(detail.compiler_output(), result.output);
  EXPECT_EQ(detail.command(), "g++ 'a b'");
  EXPECT_EQ(detail.exit_code(), 3);
}

TEST(FailureTest, ASilentFailureStillSaysSomething) {
  exec::ActionResult result;
  result.exit_code = 4;
  exec::Action action;
  action.step = "compile";
  EXPECT_EQ(GetErrorDetail(StepFailure(action, result)).message(), "compile failed: exit code 4 without a message");
}

TEST(FailedCommandTest, IsLeftOutIfItReadsVeryMuch) {
  exec::Action action;
  action.argv = {"g++"};
  const absl::Status error = StepFailure(action, {.exit_code = 1});
  action.inputs.push_back(exec::MakeInput("small", "text"));
  EXPECT_TRUE(GetErrorDetail(WithFailedCommand(error, action)).has_failed_command());
  action.inputs.push_back(exec::MakeInput("large", std::string(33 << 20, 'x')));
  EXPECT_FALSE(GetErrorDetail(WithFailedCommand(error, action)).has_failed_command());
}

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(FailureAdviceTest, NamesTheLibraryOfASymbol) {
  EXPECT_EQ(AdviceForFailure("undefined reference to `cublasLtMatmul'"),
            "It may be part of cuBLASLt: pass -lcublasLt in extra_ldflags; else define it");
  EXPECT_EQ(AdviceForFailure("ld.lld: error: undefined symbol: cublasCreate_v2"),
            "It may be part of cuBLAS: pass -lcublas in extra_ldflags; else define it");
  for (const char* symbol : {"__atomic_store_16", "__atomic_load", "__atomic_compare_exchange_16"}) {
    EXPECT_EQ(AdviceForFailure(StrCat("undefined reference to `", symbol, "'")),
              "It may be part of libatomic: pass -latomic in extra_ldflags; else define it");
  }
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
