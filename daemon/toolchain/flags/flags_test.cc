// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/flags/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/shell_words.h"
#include "common/base/strings.h"
#include "tests/support/flags_fixture.h"

namespace kernix::toolchain {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(FlagsTest, CommonCompileFlagsOfCppPassAsTheyAre) {
  for (const FlagPolicy policy : kBoth) {
    for (const char* flags : {"-O2",
                              "-g",
                              "-std=c++20",
                              "--std=c++20",
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
                              "-fvisibility=hidden"}) {
      EXPECT_EQ(absl::StrJoin(MustPass(v1::LANGUAGE_CPP, policy, flags, "").host, "|"), flags);
    }
  }
}

TEST_F(FlagsTest, LinkTimeOptimisationIsForAll) {
  for (const FlagPolicy policy : kBoth) {
    for (const char* flag : {"-flto", "-flto=full", "-flto=thin", "-flto-partition=one", "-fno-lto"}) {
      MustPass(v1::LANGUAGE_CPP, policy, flag, flag);
    }
  }
  for (const char* flag : {"-flto=64", "-flto=auto", "-flto=jobserver", "-flto-jobs=2"}) {
    MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, flag, flag);
    ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, flag, "", "one job's processor");
    ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, "", flag, "one job's processor");
  }
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, "", "-Wl,--threads=8", "one job's processor");
}

// nvcc splits the words for the host compiler once more.
TEST_F(FlagsTest, NoCommaGoesToTheHostCompilerThroughNvcc) {
  for (const FlagPolicy policy : kBoth) {
    for (const char* flag : {"-Xcompiler=-fsanitize=address\\,-B.", "-Xcompiler|-fsanitize=address\\,-include"}) {
      EXPECT_FALSE(Check(v1::LANGUAGE_CUDA, policy, flag, "").ok()) << flag;
    }
    MustPass(v1::LANGUAGE_CUDA, policy, "-Xcompiler=-fsanitize=address,-fsanitize=undefined", "");
  }
}

TEST_F(FlagsTest, AHostCompilerWithoutNvccIsGivenAnyValue) {
  for (const FlagPolicy policy : kBoth) {
    MustPass(v1::LANGUAGE_CPP, policy, "-mllvm|-x=(a b)", "-Wl,--defsym=a=(b+4)");
    EXPECT_FALSE(Check(v1::LANGUAGE_CUDA, policy, "-Xcompiler=-fx=(a)", "").ok());
  }
}

// kernixd would put a folder in its place that differs from run to run.
TEST_F(FlagsTest, NoFlagHoldsAPlaceholder) {
  for (const FlagPolicy policy : kBoth) {
    for (const char* flag : {"-frandom-seed={kernix-action-root}", "-frandom-seed={kernix-host-0}"}) {
      ExpectRefused(v1::LANGUAGE_CPP, policy, flag, "", "{kernix-");
      ExpectRefused(v1::LANGUAGE_CUDA, policy, StrCat("-Xcompiler=", flag), "", "{kernix-");
    }
    ExpectRefused(v1::LANGUAGE_CPP, policy, "", "-Wl,-soname,{kernix-action-root}", "{kernix-");
  }
  Write("/home/u/{kernix-action-root}/list", "other");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-fsanitize-ignorelist=/home/u/{kernix-action-root}/list", "",
                "{kernix-");
  MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-frandom-seed={kernel}", "");
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
      {"-ftime-report", "from run to run"},
      {"-ftime-report-details", "from run to run"},
      {"-frecord-gcc-switches", "command line"},
      {"-fpack-struct=4", "layout of structs"},
      {"-mabi=ms", "layout of structs"},
      {"-m32", "layout of structs"},
      {"-ffile-prefix-map=/a=/b", "paths out"},
      {"-static", "shared library"},
      {"-Wl,-z,now", "extra_ldflags"},
      {"-lm", "extra_ldflags"},
      {"-L/x", "extra_ldflags"},
      {"-Wp,-MD,x", "by itself"},
      {"-Wa,-I/x", "assembler"},
      {"-Wa,-mbig-obj,-o,x", "assembler"},
      {"-Wa,--MD,x", "assembler"},
      {"-Wa,-mx=/x", "names a file"},
      {"--for-assembler=--MD", "-Wa"},
      {"-Xclang|/home/u/plugin.so", "names a file"},
      {"-Xclang|-I/home/u", "names a file"},
      {"-fnew-thing=/home/u/x", "names a file"},
      {"-fnew-thing=../../x", "names a file"},
      {"-fcompare-debug=-fplugin=x", "kernix decides"},
      {"--write-user-dependencies", "kernix decides"},
      {"--output=x", "kernix decides"},
      {"--prefix=src", "CXX"},
      {"-std=/x", "names a file"},
      {"-D", "value is missing"},
      {"file.cc", "not a flag"},
      {"/home/u/o.o", "not a flag"},
  };
  for (const FlagPolicy policy : kBoth) {
    for (const Refusal& refusal : refusals) {
      ExpectRefused(v1::LANGUAGE_CPP, policy, refusal.flags, "", refusal.words);
    }
  }
}

TEST_F(FlagsTest, OneBadFlagAmongGoodOnesIsFound) {
  const auto checked = Check(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "-O2|-D|c|-wrapper|-O3", "");
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(std::string(checked.status().message()), HasSubstr("-wrapper"));
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
      MustPass(v1::LANGUAGE_CPP, FlagPolicy::kShared, "-O2|-march=native|-g", "").host,
      ElementsAre("-O2", "-march=znver3", "-mavx2", "-mno-sgx", "--param=l1-cache-size=32", "-mtune=znver3", "-g"));
  EXPECT_THAT(MustPass(v1::LANGUAGE_CPP, FlagPolicy::kShared, "-mtune=native", "").host,
              ElementsAre("--param=l1-cache-size=32", "-mtune=znver3"));
  EXPECT_THAT(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-Xcompiler|-mtune=native,-fopenmp", "").host,
              ElementsAre("--param=l1-cache-size=32", "-mtune=znver3", "-fopenmp"));
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
      EXPECT_EQ(absl::StrJoin(MustPass(v1::LANGUAGE_CUDA, policy, flags, "").nvcc, "|"), flags);
    }
  }
}

TEST_F(FlagsTest, ThreadsOfNvccAreLeftOut) {
  for (const char* flags : {"-t|4|-O3", "-t=4|-O3", "-t4|-O3", "--threads=4|-O3", "--threads|4|-O3"}) {
    const CheckedFlags checked = MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, flags, "");
    EXPECT_THAT(checked.nvcc, ::testing::ElementsAre("-O3")) << flags;
  }
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
      {"-ewp", "use -rdc=true"},
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
      {"-Xptxas|--options-file=x", "write the flags"},
      {"-Xptxas|-optf,x", "write the flags"},
      {"-Xptxas|--split-compile=4", "ninja_workers"},
      {"-Xptxas|--x=a/b", "names a file"},
      {"-keep=true", "kernix decides"},
      {"-no-such=/x", "names a file"},
      {"-Xcudafe|--gen_c_file_name=x", "cudafe++"},
      {"-maxrregcount", "value is missing"},
      {"k.cu", "not a flag"},
  };
  for (const FlagPolicy policy : kBoth) {
    for (const Refusal& refusal : refusals) {
      ExpectRefused(v1::LANGUAGE_CUDA, policy, refusal.flags, "", refusal.words);
    }
  }
}

TEST_F(FlagsTest, FlagsForTheHostCompilerAreCheckedAsSuch) {
  const CheckedFlags checked =
      MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-Xcompiler=-fPIC,-Wall|-O3|--compiler-options|-g", "");
  EXPECT_THAT(checked.nvcc, ElementsAre("-O3"));
  EXPECT_THAT(checked.host, ElementsAre("-fPIC", "-Wall", "-g"));
  EXPECT_THAT(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-Xcompiler|-fopenmp -O1", "").host,
              ElementsAre("-fopenmp", "-O1"));
  for (const char* flags : {"-Xcompiler|-fPIC,-wrapper,/bin/sh", "-Xcompiler=@/x", "-Xcompiler=-B/x",
                            "-Xcompiler|-specs=/x", "-Xcompiler=-fplugin=x"}) {
    EXPECT_EQ(KindOf(Check(v1::LANGUAGE_CUDA, FlagPolicy::kShared, flags, "").status()),
              v1::ErrorDetail::INVALID_REQUEST)
        << flags;
  }
}

TEST_F(FlagsTest, SomeFlagsOfCudaMeanMore) {
  EXPECT_TRUE(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-rdc=true", "").relocatable_device_code);
  EXPECT_TRUE(
      MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "--relocatable-device-code|true", "").relocatable_device_code);
  const CheckedFlags device_compile = MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-dc", "");
  EXPECT_TRUE(device_compile.relocatable_device_code);
  EXPECT_THAT(device_compile.nvcc, ElementsAre("-rdc=true"));
  EXPECT_FALSE(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-rdc=false", "").relocatable_device_code);
  EXPECT_THAT(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "-cudart=static|-m64", "").nvcc, IsEmpty());
}

TEST_F(FlagsTest, AHostCompilerThatNvccRefusesIsAToolchainErrorUnlessTheUserInsists) {
  toolchain_.cuda->host_refusal = "too new";
  EXPECT_EQ(KindOf(Check(v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, "", "").status()), v1::ErrorDetail::TOOLCHAIN);
  MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, "-allow-unsupported-compiler", "");
  MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "");
}

// As g++ reads them, in the spellings of g++ and nvcc.
TEST_F(FlagsTest, MacrosBecomeLinesOfTheSource) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"-DX", "#define X 1"},
      {"-DX=", "#define X "},
      {"-D|X=2", "#define X 2"},
      {"-D_GLIBCXX_USE_CXX11_ABI=0", "#define _GLIBCXX_USE_CXX11_ABI 0"},
      {"-DNAME=\"a b\"", "#define NAME \"a b\""},
      {"-DX=(1<<3)", "#define X (1<<3)"},
      {"-DF(x)=x", "#define F(x) x"},
      {"-DF(x, y...)=x", "#define F(x, y...) x"},
      {"-DX=a=b", "#define X a=b"},
      {"-DX=$(id)`id`;@y", "#define X $(id)`id`;@y"},
      {"-DX=/* a */ 1 /* b */", "#define X /* a */ 1 /* b */"},
      {"-DX=\"BAR\" y", "#define X \"BAR\" y"},
      {"-DX=R\"d(a)d\"", "#define X R\"d(a)d\""},
      {"-UX", "#undef X"},
      {"-U|X", "#undef X"},
  };
  for (const FlagPolicy policy : kBoth) {
    for (const v1::Language language : {v1::LANGUAGE_CPP, v1::LANGUAGE_CUDA}) {
      for (const auto& [flags, line] : cases) {
        const CheckedFlags checked = MustPass(language, policy, flags, "");
        EXPECT_THAT(checked.definitions, ElementsAre(line)) << flags;
        EXPECT_THAT(checked.host, IsEmpty()) << flags;
        EXPECT_THAT(checked.nvcc, IsEmpty()) << flags;
      }
    }
  }
  EXPECT_THAT(MustPass(v1::LANGUAGE_CPP, FlagPolicy::kShared, "-DX|-O2|-UX|-DX=2", "").definitions,
              ElementsAre("#define X 1", "#undef X", "#define X 2"));
}

// nvcc reads lists, and passes the macros in -Xcompiler on before its own.
TEST_F(FlagsTest, MacrosInNvccsSpelling) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"--define-macro=X", {"#define X 1"}},
      {"--define-macro|X=1,Y", {"#define X 1", "#define Y 1"}},
      {"-D=X", {"#define X 1"}},
      {"-DX=a\\,b", {"#define X a,b"}},
      {"-DX=\\\"a b\\\"", {"#define X \"a b\""}},
      {"-DX=f(a,b),Y=','", {"#define X f(a,b)", "#define Y ','"}},
      {"--undefine-macro=X,Y", {"#undef X", "#undef Y"}},
      {"-Xcompiler|-DX=1,-UY", {"#define X 1", "#undef Y"}},
      {"-Xcompiler|-DX=\"a, b\" -DY", {"#define X \"a, b\"", "#define Y 1"}},
      {"-Xcompiler|-D|-Xcompiler|X=1", {"#define X 1"}},
      {"-DX=2|--compiler-options=-DX=1", {"#define X 1", "#define X 2"}},
  };
  for (const auto& [flags, lines] : cases) {
    const CheckedFlags checked = MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, flags, "");
    EXPECT_THAT(checked.definitions, ElementsAreArray(lines)) << flags;
    EXPECT_THAT(checked.host, IsEmpty()) << flags;
    EXPECT_THAT(checked.nvcc, IsEmpty()) << flags;
  }
}

TEST_F(FlagsTest, AMacroIsANameAndOneLine) {
  const Refusal refusals[] = {
      {"-D1X", "not a macro name"},
      {"-D|@inc/0/args.h", "not a macro name"},
      {"-U|@inc/0/args.h", "not a macro name"},
      {"-DX Y=1", "not a macro name"},
      {"-D$(id)", "not a macro name"},
      {"-DF(x=1", "not a macro name"},
      {"-DF(\"x\")=1", "not a macro name"},
      {"-UX=1", "not a macro name"},
      {"-UF(x)", "not a macro name"},
      {"-DX=a\\", "next line"},
      {"-DX=a\\ ", "next line"},
      {"-DX=a?\?/", "next line"},
      {"-DX=/*", "next line"},
      {"-DX=\"*/\" /*", "next line"},
      {"-DX=/*/", "next line"},
      {"-DX=R\"(a", "next line"},
      {"-DX=uR\"d(a)\"", "next line"},
      {"-DX=a\rb", "control"},
  };
  for (const FlagPolicy policy : kBoth) {
    for (const Refusal& refusal : refusals) {
      ExpectRefused(v1::LANGUAGE_CPP, policy, refusal.flags, "", refusal.words);
    }
  }
}

TEST_F(FlagsTest, NoWordNamesAFileOfFlags) {
  for (const FlagPolicy policy : kBoth) {
    for (const char* flags : {"--param|@x", "--param=@x", "-u@x", "-std=@x", "-fx@x", "-Wa,-mx,@x", "-mllvm|@x",
                              "-Xclang|@x", "-no-such|@x", "-march=@x"}) {
      EXPECT_EQ(KindOf(Check(v1::LANGUAGE_CPP, policy, flags, "").status()), v1::ErrorDetail::INVALID_REQUEST) << flags;
    }
    for (const char* flags : {"-Xptxas|@x", "-Xptxas=-v,@x", "-Xptxas|-v @x", "-Xcudafe|@x", "-Xcompiler|@x",
                              "-Xcompiler=-O2,@x", "-std|@x", "-diag-suppress=1,@x", "@x", "-maxrregcount=@x"}) {
      EXPECT_EQ(KindOf(Check(v1::LANGUAGE_CUDA, policy, flags, "").status()), v1::ErrorDetail::INVALID_REQUEST)
          << flags;
    }
    for (const char* flags : {"-z|@x", "-u|@x", "-u@x", "-Wl,-u,@x", "-Wl,--defsym=@x", "-Wl,--wrap,@x", "-T@x", "-l@x",
                              "-Xlinker|@x", "-Xlinker|-z|-Xlinker|@x", "@x"}) {
      EXPECT_EQ(KindOf(Check(v1::LANGUAGE_CPP, policy, "", flags).status()), v1::ErrorDetail::INVALID_REQUEST) << flags;
    }
  }
  // A symbol version is not a file of flags.
  MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "-Wl,--defsym=f=memcpy@GLIBC_2.2.5|-Wl,-u,f@@V1");
}

// Whatever a value contains, either the flag is refused or every remaining word is harmless.
TEST_F(FlagsTest, NothingReachesAShellThatItWouldRead) {
  const std::string_view flags[] = {"-D%",
                                    "-U%",
                                    "-D|X=%",
                                    "-Xcompiler|-DX=%",
                                    "-Xcompiler|%",
                                    "-Xcompiler|-f%",
                                    "-std=%",
                                    "-Xptxas|%",
                                    "-Xptxas=-v%",
                                    "-Xcudafe|--diag_suppress=%",
                                    "-maxrregcount=%",
                                    "-frandom-seed=%",
                                    "-diag-suppress|%",
                                    "-O%",
                                    "-Werror=%",
                                    "-Xcompiler|-W%",
                                    "-Xcompiler|--param|%",
                                    "-opt-info=%",
                                    "-no-such-%",
                                    "--default-stream=%",
                                    "-Xcompiler|-Wa,-m%",
                                    "-Xcompiler|-march=%",
                                    "-Xcompiler|-mllvm,%",
                                    "--no-such=%"};
  const char* values[] = {"$(id)", "`id`", ";id", "|id", "&id",   ">f", "<f", "a b",  "'", "\"", "\\", "*",
                          "?",     "[a]",  "#",   "!x",  "{a,b}", "\t", "~",  "a\nb", "^", "(",  ")"};
  for (const FlagPolicy policy : kBoth) {
    for (const std::string_view flag : flags) {
      for (const char* value : values) {
        std::vector<std::string> words = absl::StrSplit(ToAbsl(flag), '|');
        for (std::string& word : words) word = absl::StrReplaceAll(word, {{"%", value}});
        const auto checked = CheckFlags(env_, toolchain_, v1::LANGUAGE_CUDA, policy, words, {});
        if (!checked.ok()) continue;
        for (const std::string& word : checked->nvcc) EXPECT_TRUE(IsHarmlessWord(word)) << flag << " " << word;
        for (const std::string& word : checked->host) EXPECT_TRUE(IsHarmlessWord(word)) << flag << " " << word;
      }
    }
  }
}

// Its tools see the request and the toolchain only, so it does not matter what a flag makes them read or run.
TEST_F(FlagsTest, WhatTheTablesDoNotKnowGoesToTheTool) {
  for (const FlagPolicy policy : kBoth) {
    for (const char* flags :
         {"-fno-such-thing", "-ga", "-O5", "-W", "-march=a:b", "--param|x", "-fembed-bitcode", "-gembed-source",
          "-fsanitize-ignorelist=list", "-fdiagnostics-format=sarif-file", "-fplugin-arg-x-y=z", "-Xclang|-load",
          "-mllvm|-load=x", "-no-canonical-prefixes", "-fsanitize=address,undefined", "-Wno-c++20-compat"}) {
      EXPECT_EQ(absl::StrJoin(MustPass(v1::LANGUAGE_CPP, policy, flags, "").host, "|"), flags);
    }
    for (const char* flags : {"-src-in-ptx", "--source-in-ptx", "-std=a:b", "--no-such", "-Xptxas|--no-such",
                              "-Xptxas=--maxrregcount,64", "-Wreorder", "-Ofc=max", "-diag-suppress=177,2361"}) {
      EXPECT_EQ(absl::StrJoin(MustPass(v1::LANGUAGE_CUDA, policy, flags, "").nvcc, "|"), flags);
    }
    for (const char* flags : {"-z|a:b", "-u|main", "-Wl,--no-such", "-Wl,--defsym,a=b", "-Wl,-hash-style,gnu",
                              "-Wl,-z,relro,-z,now", "-rdynamic", "-nostdlib"}) {
      EXPECT_EQ(absl::StrJoin(MustPass(v1::LANGUAGE_CPP, policy, "", flags).link, "|"), flags);
    }
  }
}

// nvcc does not take the next word as a value after a '=', nor a word that begins with '-': such a word would be an
// unchecked flag.
TEST_F(FlagsTest, NoFlagPassesAsTheValueOfAnother) {
  for (const FlagPolicy policy : kBoth) {
    for (const char* flags : {"-frandom-seed=|-keep", "-maxrregcount=|-optf", "-Ofc|-keep", "--Ofast-compile|-optf",
                              "-Xptxas=|-keep", "-diag-suppress=|-keep", "-std|-keep"}) {
      EXPECT_FALSE(Check(v1::LANGUAGE_CUDA, policy, flags, "").ok()) << flags;
    }
    for (const char* flags :
         {"-Xlinker|--exclude-libs=a,-Tx", "-Xlinker|--exclude-libs=a,b", "-Xlinker|--exclude-libs=a,-rpath,/x"}) {
      EXPECT_FALSE(Check(v1::LANGUAGE_CPP, policy, "", flags).ok()) << flags;
    }
  }
}

TEST_F(FlagsTest, OddTextIsRefused) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{""}, {std::string("-DX\0Y", 5)}, {"-DX=\n#include </etc/passwd>"}}) {
    EXPECT_EQ(KindOf(CheckFlags(env_, toolchain_, v1::LANGUAGE_CPP, FlagPolicy::kPerUser, flags, {}).status()),
              v1::ErrorDetail::INVALID_REQUEST);
  }
}

class ArchitecturesTest : public ::testing::Test {
 protected:
  ArchitecturesTest() {
    cuda_.version = "13.0";
    cuda_.architectures = {75, 80, 86, 90, 100, 120};
  }
  CudaToolkit cuda_;
};

TEST_F(ArchitecturesTest, AllSpellingsSortedWithoutDoubles) {
  const auto checked =
      CheckArchitectures(cuda_, {"sm_120", "8.6", "86", "compute_75", "12.0", "sm_90", "sm_90a", "10.0"});
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_THAT(*checked, ElementsAre("sm_75", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_120"));
}

TEST_F(ArchitecturesTest, AGpuHasTheMostSpecificTargetOfTheToolkit) {
  const std::vector<std::string> gpus = {"sm_75", "sm_86", "sm_90", "sm_100", "sm_120"};
  cuda_.major_version = 13;
  EXPECT_THAT(*CheckArchitectures(cuda_, gpus, /*of_gpu=*/true),
              ElementsAre("sm_75", "sm_86", "sm_90a", "sm_100a", "sm_120f"));
  cuda_.major_version = 12;
  cuda_.minor_version = 9;
  EXPECT_THAT(*CheckArchitectures(cuda_, {"sm_120"}, /*of_gpu=*/true), ElementsAre("sm_120f"));
  cuda_.minor_version = 8;
  EXPECT_THAT(*CheckArchitectures(cuda_, {"sm_120"}, /*of_gpu=*/true), ElementsAre("sm_120a"));
  EXPECT_THAT(*CheckArchitectures(cuda_, gpus), ElementsAre("sm_75", "sm_86", "sm_90", "sm_100", "sm_120"));
}

TEST_F(ArchitecturesTest, WordsOfNvccStandForMany) {
  EXPECT_THAT(*CheckArchitectures(cuda_, {"all"}), ElementsAre("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"));
  EXPECT_THAT(*CheckArchitectures(cuda_, {"all-major", "sm_90a"}),
              ElementsAre("sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"));
}

TEST_F(ArchitecturesTest, WhatIsNoArchitectureIsRefused) {
  for (const char* text :
       {"", "sm_", "native", "8", "8.66", "sm_9x", "-90", "sm_90ab", "99999", "8.", ".6", "sm_ 90"}) {
    const auto checked = CheckArchitectures(cuda_, {"sm_80", text});
    EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::INVALID_REQUEST) << text;
  }
  EXPECT_EQ(KindOf(CheckArchitectures(cuda_, {}).status()), v1::ErrorDetail::INVALID_REQUEST);
}

TEST_F(ArchitecturesTest, WhatThisToolkitDoesNotKnowIsAToolchainErrorThatNamesWhatItKnows) {
  const auto checked = CheckArchitectures(cuda_, {"sm_70"});
  EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(std::string(checked.status().message()), HasSubstr("sm_75, sm_80, sm_86, sm_90, sm_100, sm_120"));
}

}  // namespace

}  // namespace kernix::toolchain
