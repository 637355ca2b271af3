// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "daemon/base/error.h"
#include "daemon/toolchain/flags_fixture.h"

namespace kernix::toolchain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(FlagsTest, CommonCompileFlagsOfCppPassAsTheyAre) {
  for (const FlagPolicy policy : kBoth) {
    for (const char* flags : {"-O2",
                              "-g",
                              "-std=c++20",
                              "--std=c++20",
                              "-DX",
                              "-DX=\"/a b\"",
                              "-D|X=1",
                              "-U|X",
                              "-fopenmp",
                              "-ffast-math",
                              "-fno-exceptions",
                              "-mavx2",
                              "-march=x86-64-v3",
                              "-Wall",
                              "-Wno-unused",
                              "-w",
                              "-pthread",
                              "-pedantic",
                              "--param|max-inline-insns-single=100",
                              "--param=x=1",
                              "-fPIC",
                              "-shared",
                              "-Wa,-mbig-obj,--noexecstack",
                              "-fvisibility=hidden",
                              "-flto"}) {
      EXPECT_EQ(absl::StrJoin(MustPass(v1::LANGUAGE_CPP, policy, flags, "").compile, "|"), flags);
    }
  }
}

TEST_F(FlagsTest, CompileFlagsOfCppThatAreNeverPossible) {
  const Refusal refusals[] = {
      {"-o|x", "kernix decides"},
      {"-ox", "kernix decides"},
      {"-c", "kernix decides"},
      {"-E", "kernix decides"},
      {"-MMD", "kernix decides"},
      {"-MF|x", "kernix decides"},
      {"-x|c", "kernix decides"},
      {"-print-search-dirs", "kernix decides"},
      {"-save-temps", "files beside"},
      {"-I/usr/include", "extra_include_paths"},
      {"-I|/usr/include", "extra_include_paths"},
      {"-isystem|/x", "extra_include_paths"},
      {"-iquote|/x", "extra_include_paths"},
      {"-include|/etc/passwd", "#include"},
      {"-imacros|x", "#include"},
      {"-B/home/u", "CXX"},
      {"-wrapper|/bin/sh", "CXX"},
      {"--sysroot=/x", "CXX"},
      {"-fuse-ld=gold", "CXX"},
      {"@/home/u/flags", "write the flags"},
      {"-fprofile-use=/x", "files beside"},
      {"-fdump-tree-all", "files beside"},
      {"-frecord-gcc-switches", "command line"},
      {"-ffile-prefix-map=/a=/b", "paths out"},
      {"-static", "shared library"},
      {"-Wl,-z,now", "extra_ldflags"},
      {"-lm", "extra_ldflags"},
      {"-L/x", "extra_ldflags"},
      {"-Wp,-MD,x", "by itself"},
      {"-Wa,-I/x", "assembler"},
      {"-Wa,-mbig-obj,-o,x", "assembler"},
      {"-D", "value is missing"},
      {"file.cc", "no flag"},
      {"/home/u/o.o", "no flag"},
  };
  for (const FlagPolicy policy : kBoth) {
    for (const Refusal& refusal : refusals) {
      ExpectRefused(v1::LANGUAGE_CPP, policy, refusal.flags, "", refusal.words);
    }
  }
}

TEST_F(FlagsTest, OneBadFlagAmongGoodOnesIsFound) {
  const auto checked = Check(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-O2|-D|-c|-wrapper|-O3", "");
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(std::string(checked.status().message()), HasSubstr("-wrapper"));
}

TEST_F(FlagsTest, WhatTheTablesDoNotKnowPassesForTheUserAlone) {
  for (const char* flag : {"-no-canonical-prefixes", "-Xclang|-some"}) {
    MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, flag, "");
    ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, flag, "", "shared");
  }
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-Xclang|/home/u/plugin.so", "", "names a file");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-fnew-thing=/home/u/x", "", "names a file");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, "-fnew-thing=x/y", "", "shared");
}

TEST_F(FlagsTest, APluginCountsByItsContent) {
  const CheckedFlags checked = MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-fplugin=/home/u/plugin.so", "");
  ASSERT_EQ(checked.files.size(), 1u);
  EXPECT_EQ(checked.files[0].staged, "");
  EXPECT_EQ(checked.files[0].digest, DigestOf("plugin"));
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-fplugin=/home/u/none.so", "", "none.so");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-fplugin=name", "", "absolute");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, "-fplugin=/home/u/plugin.so", "", "shared");
}

TEST_F(FlagsTest, NativeIsReplacedByWhatItStandsFor) {
  EXPECT_THAT(
      MustPass(v1::LANGUAGE_CPP, FlagPolicy::kShared, "-O2|-march=native|-g", "").compile,
      ElementsAre("-O2", "-march=znver3", "-mavx2", "-mno-sgx", "--param=l1-cache-size=32", "-mtune=znver3", "-g"));
  EXPECT_THAT(MustPass(v1::LANGUAGE_CPP, FlagPolicy::kShared, "-mtune=native", "").compile,
              ElementsAre("--param=l1-cache-size=32", "-mtune=znver3"));
  EXPECT_THAT(
      MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-Xcompiler|-mtune=native,-fopenmp", "").compile,
      ElementsAre("-Xcompiler", "--param=l1-cache-size=32", "-Xcompiler", "-mtune=znver3", "-Xcompiler", "-fopenmp"));
}

TEST_F(FlagsTest, ACompilerThatDoesNotSayWhatNativeIsCannotBeUsedSo) {
  env_.SetProgram("/usr/bin/g++", [](const ProcessSpec&, Cancellation*) {
    return absl::StatusOr<ProcessResult>(ProcessResult{.output = " /x/cc1plus -E -march=native\n"});
  });
  const auto checked = Check(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-march=native", "");
  EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::TOOLCHAIN);
}

TEST_F(FlagsTest, CommonCompileFlagsOfCudaPassAsTheyAre) {
  for (const FlagPolicy policy : kBoth) {
    for (const char* flags : {"-O3",
                              "-O|2",
                              "--optimize=2",
                              "-std=c++20",
                              "--std=c++17",
                              "-std|c++20",
                              "--use_fast_math",
                              "-use_fast_math",
                              "--expt-relaxed-constexpr",
                              "-expt-relaxed-constexpr",
                              "--expt-extended-lambda",
                              "--extended-lambda",
                              "-DX=1",
                              "-D|X",
                              "--define-macro=X",
                              "-UX",
                              "-Xptxas|-v",
                              "-Xptxas=-v,-O3",
                              "--ptxas-options=-v",
                              "-maxrregcount=64",
                              "--maxrregcount|64",
                              "-diag-suppress=177",
                              "--diag-suppress|177",
                              "-w",
                              "-g",
                              "--fmad=false",
                              "-ftz=true",
                              "--default-stream=per-thread",
                              "-Xcudafe|--diag_suppress=unrecognized_gcc_pragma",
                              "-Werror=all-warnings",
                              "-lineinfo",
                              "-rdc=true"}) {
      EXPECT_EQ(absl::StrJoin(MustPass(v1::LANGUAGE_CUDA, policy, flags, "").compile, "|"), flags);
    }
  }
}

TEST_F(FlagsTest, ThreadsOfNvccAreABoundForThePlan) {
  for (const char* flags : {"-t|4|-O3", "-t=4|-O3", "--threads=4|-O3", "--threads|4|-O3"}) {
    const CheckedFlags checked = MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, flags, "");
    EXPECT_THAT(checked.compile, ::testing::ElementsAre("-O3")) << flags;
    EXPECT_EQ(checked.nvcc_threads, 4) << flags;
  }
  EXPECT_EQ(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-O3", "").nvcc_threads, 0);
  ExpectRefused(v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, "--threads=all", "", "number of threads");
  ExpectRefused(v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, "--split-compile=4", "", "ninja_workers");
}

TEST_F(FlagsTest, CompileFlagsOfCudaThatAreNeverPossible) {
  const Refusal refusals[] = {
      {"-arch=sm_90", "compute_capability"},
      {"-arch|native", "compute_capability"},
      {"--gpu-architecture=sm_90", "compute_capability"},
      {"-gencode|arch=compute_90,code=sm_90", "compute_capability"},
      {"-gencode=arch=compute_90,code=sm_90", "compute_capability"},
      {"-code=sm_90", "compute_capability"},
      {"-ccbin|/usr/bin/g++", "CXX"},
      {"--compiler-bindir=/x", "CXX"},
      {"--options-file|/x", "write the flags"},
      {"-optf=/x", "write the flags"},
      {"-I/x", "extra_include_paths"},
      {"-I|/x", "extra_include_paths"},
      {"-isystem=/x", "extra_include_paths"},
      {"-include|/x", "#include"},
      {"-o|x", "kernix decides"},
      {"-c", "kernix decides"},
      {"--keep", "kernix decides"},
      {"--ptx", "kernix decides"},
      {"--dryrun", "kernix decides"},
      {"-MD", "kernix decides"},
      {"-dlto", "not supported"},
      {"-lcublas", "extra_ldflags"},
      {"-L/x", "extra_ldflags"},
      {"-Xlinker|-z", "extra_ldflags"},
      {"-Xnvlink|-v", "CUDA_HOME"},
      {"-ldir=/x", "CUDA_HOME"},
      {"-cudart=shared", "statically"},
      {"--forward-unknown-to-host-compiler", "-Xcompiler"},
      {"-fopenmp", "-Xcompiler=-fopenmp"},
      {"-Wall", "-Xcompiler=-Wall"},
      {"-march=native", "-Xcompiler=-march=native"},
      {"-Xptxas|-o=/x", "kernix decides"},
      {"-Xptxas|--options-file=x", "kernix decides"},
      {"-Xcudafe|--gen_c_file_name=x", "cudafe++"},
      {"-maxrregcount", "value is missing"},
      {"k.cu", "no flag"},
  };
  for (const FlagPolicy policy : kBoth) {
    for (const Refusal& refusal : refusals) {
      ExpectRefused(v1::LANGUAGE_CUDA, policy, refusal.flags, "", refusal.words);
    }
  }
}

TEST_F(FlagsTest, FlagsForTheHostCompilerAreCheckedAsSuch) {
  EXPECT_THAT(
      MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-Xcompiler=-fPIC,-Wall|-O3|--compiler-options|-g", "").compile,
      ElementsAre("-O3", "-Xcompiler", "-fPIC", "-Xcompiler", "-Wall", "-Xcompiler", "-g"));
  EXPECT_THAT(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-Xcompiler|-fopenmp -O1", "").compile,
              ElementsAre("-Xcompiler", "-fopenmp", "-Xcompiler", "-O1"));
  for (const char* flags : {"-Xcompiler|-fPIC,-wrapper,/bin/sh", "-Xcompiler=@/x", "-Xcompiler=-B/x",
                            "-Xcompiler|-specs=/x", "-Xcompiler=-fplugin=x"}) {
    const auto checked = Check(v1::LANGUAGE_CUDA, FlagPolicy::kShared, flags, "");
    EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::INVALID_REQUEST) << flags;
  }
}

TEST_F(FlagsTest, SomeFlagsOfCudaMeanMore) {
  EXPECT_TRUE(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-rdc=true", "").relocatable_device_code);
  EXPECT_TRUE(
      MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "--relocatable-device-code|true", "").relocatable_device_code);
  const CheckedFlags device_compile = MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-dc", "");
  EXPECT_TRUE(device_compile.relocatable_device_code);
  EXPECT_THAT(device_compile.compile, ElementsAre("-rdc=true"));
  EXPECT_FALSE(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-rdc=false", "").relocatable_device_code);
  EXPECT_TRUE(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-lineinfo", "").toolkit_path_in_artifact);
  EXPECT_TRUE(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-G", "").toolkit_path_in_artifact);
  EXPECT_FALSE(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-g", "").toolkit_path_in_artifact);
  EXPECT_THAT(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-cudart=static|-m64", "").compile, IsEmpty());
}

TEST_F(FlagsTest, AHostCompilerThatNvccRefusesIsAToolchainErrorUnlessTheUserInsists) {
  toolchain_.cuda->host_refusal = "too new";
  EXPECT_EQ(KindOf(Check(v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, "", "").status()), v1::ErrorDetail::TOOLCHAIN);
  MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, "-allow-unsupported-compiler", "");
  MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "");
}

TEST_F(FlagsTest, OddTextIsRefused) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{""}, {std::string("-DX\0Y", 5)}, {"-DX=\n#include </etc/passwd>"}}) {
    EXPECT_EQ(KindOf(CheckFlags(env_, toolchain_, v1::LANGUAGE_CPP, FlagPolicy::kPerUser, flags, {}).status()),
              v1::ErrorDetail::INVALID_REQUEST);
  }
}

}  // namespace
}  // namespace kernix::toolchain
