// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/error.h"
#include "daemon/base/mem_env.h"
#include "daemon/base/paths.h"
#include "daemon/base/strings.h"

namespace kernix::toolchain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Flags are written as one text; '|' stands between them.
std::vector<std::string> Split(const std::string& text) { return absl::StrSplit(text, '|', absl::SkipEmpty()); }

class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() {
    toolchain_.host.path = "/usr/bin/g++";
    toolchain_.host.library_directories = {"/usr/lib"};
    toolchain_.cuda.emplace();
    toolchain_.cuda->root = "/cuda";
    toolchain_.cuda->library_directories = {"/cuda/lib"};
    Write("/usr/lib/libm.so", "libm");
    Write("/cuda/lib/libcublas.so.13", "cublas");
    Write("/home/u/lib/libx.so", "x shared");
    Write("/home/u/lib/libx.a", "x static");
    Write("/home/u/lib/liby.a", "y");
    Write("/home/u/other/liby.a", "other y");
    Write("/home/u/o.o", "object");
    Write("/home/u/plugin.so", "plugin");
    env_.SetProgram("/usr/bin/g++", [](const ProcessSpec& spec, Cancellation*) {
      return absl::StatusOr<ProcessResult>(ProcessResult{.output = Answer(spec.argv.at(1))});
    });
  }

  // As g++ answers to -###.
  static std::string Answer(const std::string& flag) {
    const std::string tune = flag.starts_with("-mtune") ? " \"-march=x86-64\"" : " \"-march=znver3\" -mavx2 -mno-sgx";
    return "Using built-in specs.\n /usr/lib/gcc/cc1plus -E -quiet /dev/null" + tune +
           " --param \"l1-cache-size=32\" \"-mtune=znver3\" -dumpbase null\n";
  }

  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(env_.CreateDirectories(Dirname(path), 0755).ok());
    ASSERT_TRUE(env_.WriteFile(path, text, 0644).ok());
  }

  absl::StatusOr<CheckedFlags> Check(v1::Language language, FlagPolicy policy, const std::string& compile,
                                     const std::string& link) {
    return CheckFlags(env_, toolchain_, language, policy, Split(compile), Split(link));
  }

  CheckedFlags MustPass(v1::Language language, FlagPolicy policy, const std::string& compile, const std::string& link) {
    absl::StatusOr<CheckedFlags> checked = Check(language, policy, compile, link);
    EXPECT_TRUE(checked.ok()) << compile << " " << link << ": " << checked.status();
    return checked.ok() ? *checked : CheckedFlags();
  }

  void ExpectRefused(v1::Language language, FlagPolicy policy, const std::string& compile, const std::string& link,
                     const std::string& words) {
    const absl::StatusOr<CheckedFlags> checked = Check(language, policy, compile, link);
    ASSERT_FALSE(checked.ok()) << compile << " " << link;
    EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::INVALID_REQUEST);
    const std::string flag = Split(compile.empty() ? link : compile).front();
    EXPECT_THAT(std::string(checked.status().message()), HasSubstr("flag \"" + flag));
    EXPECT_THAT(std::string(checked.status().message()), HasSubstr(words)) << flag;
  }

  void ExpectRefusedLink(const std::string& flags) {
    const absl::StatusOr<CheckedFlags> checked = Check(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", flags);
    ASSERT_FALSE(checked.ok()) << flags;
    EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::INVALID_REQUEST) << flags;
  }

  MemEnv env_;
  Toolchain toolchain_;
};

constexpr FlagPolicy kBoth[] = {FlagPolicy::kPerUser, FlagPolicy::kShared};

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

struct Refusal {
  const char* flags;
  const char* words;
};

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
      {"-dc", "-rdc=true"},
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

TEST_F(FlagsTest, CommonLinkFlagsPassAsTheyAre) {
  for (const FlagPolicy policy : kBoth) {
    for (const v1::Language language : {v1::LANGUAGE_CPP, v1::LANGUAGE_CUDA}) {
      for (const char* flags :
           {"-pthread", "-fopenmp", "-s", "-static-libgcc", "-static-libstdc++", "-Wl,--as-needed", "-Wl,-z,now",
            "-Wl,--gc-sections,--exclude-libs,ALL", "-Wl,--no-undefined", "-Wl,-O1", "-z|undefs", "-flto"}) {
        EXPECT_EQ(absl::StrJoin(MustPass(language, policy, "", flags).link, "|"), flags);
      }
    }
  }
}

TEST_F(FlagsTest, LinkFlagsThatAreNeverPossible) {
  const Refusal refusals[] = {
      {"-Wl,-rpath,/home/u/lib", "LD_LIBRARY_PATH"},
      {"-Wl,-rpath=/home/u/lib", "LD_LIBRARY_PATH"},
      {"-Wl,--rpath-link,/x", "LD_LIBRARY_PATH"},
      {"-Wl,-R/x", "LD_LIBRARY_PATH"},
      {"-rpath|/x", "LD_LIBRARY_PATH"},
      {"-Wl,--version-script=/x", "a file"},
      {"-Wl,-T,/x", "a file"},
      {"-Wl,--version-script,/x", "a file"},
      {"-T|/x", "a file"},
      {"-Wl,-Map=/x", "a file"},
      {"-Wl,-o,/x", "a file"},
      {"-Wl,-plugin,/x", "a file"},
      {"-Wl,-L/x", "by itself"},
      {"-Wl,-soname,x", "no name"},
      {"-Wl,@/x", "write the flags"},
      {"-o|x", "kernix decides"},
      {"-B/x", "CXX"},
      {"@x", "write the flags"},
      {"-pie", "shared library"},
      {"-l", "value is missing"},
      {"-l/x", "holds no"},
  };
  for (const FlagPolicy policy : kBoth) {
    for (const v1::Language language : {v1::LANGUAGE_CPP, v1::LANGUAGE_CUDA}) {
      for (const Refusal& refusal : refusals) ExpectRefused(language, policy, "", refusal.flags, refusal.words);
    }
  }
  ExpectRefusedLink("-Xlinker|-rpath");
}

// A word is a value only when the linker, too, sees it right after its flag.
TEST_F(FlagsTest, WordsOfTheLinkerCannotHideAsValues) {
  EXPECT_EQ(absl::StrJoin(MustPass(v1::LANGUAGE_CPP, FlagPolicy::kShared, "", "-Xlinker|-z|-Xlinker|now").link, "|"),
            "-Wl,-z|-Wl,now");
  ExpectRefusedLink("-Wl,-z,now,-rpath,/x");
  ExpectRefusedLink("-Wl,-z|-lm|-Wl,-rpath|-Wl,/x");
  ExpectRefusedLink("-Wl,-z|-s|-Wl,-rpath|-Wl,/x");
  ExpectRefusedLink("-Wl,-z,@/x");
}

TEST_F(FlagsTest, NvccsSpellingOfLinkFlagsIsTranslated) {
  EXPECT_THAT(
      MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "-Xlinker=-z,now|-Xcompiler|-fopenmp|-cudart=static").link,
      ElementsAre("-Wl,-z", "-Wl,now", "-fopenmp"));
  EXPECT_THAT(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "--library=m|--library|m").link,
              ElementsAre("-lm", "-lm"));
  EXPECT_EQ(KindOf(Check(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "-Xlinker|-rpath,/x").status()),
            v1::ErrorDetail::INVALID_REQUEST);
}

TEST_F(FlagsTest, LibrariesOfTheCompilerAndTheToolkitGoByNameAndCountByContent) {
  const CheckedFlags checked = MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "-lm|-l|cublas|-lnone|-lcudart");
  EXPECT_THAT(checked.link, ElementsAre("-lm", "-l:libcublas.so.13", "-lnone"));
  ASSERT_EQ(checked.files.size(), 2u);
  EXPECT_EQ(checked.files[0].digest, DigestOf("libm"));
  EXPECT_EQ(checked.files[1].digest, DigestOf("cublas"));
  EXPECT_EQ(checked.files[0].staged, "");
}

TEST_F(FlagsTest, LibrariesOfTheUserAreStaged) {
  const CheckedFlags checked =
      MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "-lx|-L|/home/u/lib|-ly|-L/home/u/other|-l:libx.a");
  EXPECT_THAT(checked.link,
              ElementsAre("-Lflag-files/L0", "-l:libx.so", "flag-files/L0/liby.a", "flag-files/L0/libx.a"));
  ASSERT_EQ(checked.files.size(), 3u);
  EXPECT_EQ(checked.files[0].staged, "flag-files/L0/libx.so");
  EXPECT_EQ(checked.files[0].path, "/home/u/lib/libx.so");
  EXPECT_EQ(checked.files[0].digest, DigestOf("x shared"));
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, "", "-L/home/u/lib", "shared");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "-Llib", "absolute");
}

TEST_F(FlagsTest, BstaticPrefersTheStaticLibrary) {
  EXPECT_THAT(
      MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "-L/home/u/lib|-Wl,-Bstatic|-lx|-Wl,-Bdynamic|-lx").link,
      ElementsAre("-Wl,-Bstatic", "flag-files/L0/libx.a", "-Wl,-Bdynamic", "-Lflag-files/L0", "-l:libx.so"));
}

TEST_F(FlagsTest, ObjectsOfTheUserAreStaged) {
  const CheckedFlags checked = MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "/home/u/o.o|/home/u/lib/libx.so");
  EXPECT_THAT(checked.link, ElementsAre("flag-files/F0/o.o", "-Lflag-files/F1", "-l:libx.so"));
  EXPECT_EQ(checked.files.at(0).digest, DigestOf("object"));
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "/home/u/none.o", "none.o");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "o.o", "absolute");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, "", "/home/u/o.o", "shared");
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
