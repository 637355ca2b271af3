// SPDX-License-Identifier: Apache-2.0
#include "client/tools/toolchain_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "tests/support/client_support.h"
#include "tests/support/fault_env.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ScratchFolder;
using testing::Variables;

class ToolchainFinderTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::ToolchainPaths> Find(std::map<std::string, std::string> variables, ToolchainSearch search = {}) {
    variables.emplace("PATH", folder_ / "bin");
    return FindToolchain(Env::Posix(), Variables(variables), search);
  }
  std::string HostOf(std::map<std::string, std::string> variables, ToolchainSearch search = {}) {
    const auto paths = Find(std::move(variables), std::move(search));
    EXPECT_TRUE(paths.ok()) << paths.status();
    return paths.ok() ? paths->host_compiler() : "";
  }
  std::string NvccOf(std::map<std::string, std::string> variables) {
    const auto paths = Find(std::move(variables), Cuda());
    EXPECT_TRUE(paths.ok()) << paths.status();
    return paths.ok() ? paths->nvcc() : "";
  }
  ToolchainSearch Cuda() { return {.language = v1::LANGUAGE_CUDA, .site_packages = {folder_ / "site"}}; }

  // The test cannot hide /usr/local/cuda from the search.
  bool MachineHasToolkit() { return access("/usr/local/cuda/bin/nvcc", X_OK) == 0; }

  ScratchFolder folder_;
};

TEST_F(ToolchainFinderTest, TakesTheFirstCompilerOnPath) {
  folder_.WriteProgram("bin/clang++");
  EXPECT_EQ(HostOf({}), folder_ / "bin/clang++");
  folder_.WriteProgram("bin/g++");
  EXPECT_EQ(HostOf({}), folder_ / "bin/g++");
  folder_.WriteProgram("bin/c++");
  EXPECT_EQ(HostOf({}), folder_ / "bin/c++");
}

// Each load does that, and other toolkits' cuda.h is far away on a slow disk.
TEST_F(ToolchainFinderTest, LooksAtWhatItNeedsOnce) {
  folder_.WriteProgram("bin/c++");
  folder_.WriteProgram("later/c++");
  folder_.WriteProgram("cuda/bin/nvcc");
  folder_.Write("cuda/include/cuda.h", "#define CUDA_VERSION 13000\n");
  FaultEnv env(Env::Posix());
  const GetEnv variables =
      Variables({{"PATH", StrCat(folder_ / "bin", ":", folder_ / "later")}, {"CUDA_HOME", folder_ / "cuda"}});
  const auto paths = FindToolchain(env, variables, Cuda());
  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_EQ(paths->host_compiler(), folder_ / "bin/c++");
  EXPECT_EQ(paths->nvcc(), folder_ / "cuda/bin/nvcc");
  EXPECT_EQ(env.Calls(Operation::kOpenFile, "cuda.h"), 1);
  EXPECT_EQ(env.Calls(Operation::kStat, "later/c++"), 0);
}

TEST_F(ToolchainFinderTest, CxxComesFirst) {
  folder_.WriteProgram("bin/c++");
  folder_.WriteProgram("bin/g++-11");
  folder_.WriteProgram("other/g++");
  EXPECT_EQ(HostOf({{"CXX", "g++-11"}}), folder_ / "bin/g++-11");
  EXPECT_EQ(HostOf({{"CXX", folder_ / "other/g++"}}), folder_ / "other/g++");
  EXPECT_EQ(HostOf({{"CXX", " "}}), folder_ / "bin/c++");
  folder_.WriteProgram("my folder/g++");
  EXPECT_EQ(HostOf({{"CXX", folder_ / "my folder/g++"}}), folder_ / "my folder/g++");
}

TEST_F(ToolchainFinderTest, LaunchersArePassedOver) {
  folder_.WriteProgram("launchers/ccache");
  ASSERT_EQ(symlink((folder_ / "launchers/ccache").c_str(), (folder_ / "launchers/g++").c_str()), 0);
  folder_.WriteProgram("bin/g++");
  const std::string path = folder_ / "launchers" + ":" + folder_ / "bin";
  EXPECT_EQ(HostOf({{"PATH", path}}), folder_ / "bin/g++");
  EXPECT_EQ(HostOf({{"CXX", "ccache g++"}}), folder_ / "bin/g++");
  EXPECT_EQ(HostOf({{"PATH", path}, {"CXX", folder_ / "launchers/g++"}}), folder_ / "bin/g++");
}

TEST_F(ToolchainFinderTest, CxxWithFlagsIsRefusedClearly) {
  folder_.WriteProgram("bin/g++");
  const auto paths = Find({{"CXX", "g++ -m64 -O0"}});
  EXPECT_EQ(KindOf(paths.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(paths.status().ToString(), AllOf(HasSubstr("CXX"), HasSubstr("-m64 -O0"), HasSubstr("extra_cflags")));
}

TEST_F(ToolchainFinderTest, ACxxThatIsNotThereIsNamed) {
  folder_.WriteProgram("bin/g++");
  const auto paths = Find({{"CXX", "g++-99"}});
  EXPECT_EQ(KindOf(paths.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(paths.status().ToString(), AllOf(HasSubstr("CXX"), HasSubstr("g++-99")));
}

TEST_F(ToolchainFinderTest, ACompilerThatWasAskedForComesBeforeCxx) {
  folder_.WriteProgram("bin/g++");
  folder_.WriteProgram("bin/g++-12");
  folder_.WriteProgram("gcc/bin/g++");
  const std::map<std::string, std::string> cxx = {{"CXX", "g++"}};
  EXPECT_EQ(HostOf(cxx, {.host_compiler = "g++-12", .host_compiler_from = "-ccbin"}), folder_ / "bin/g++-12");
  EXPECT_EQ(HostOf(cxx, {.host_compiler = folder_ / "gcc/bin", .host_compiler_from = "-ccbin"}),
            folder_ / "gcc/bin/g++");
  const auto missing = Find(cxx, {.host_compiler = "nope", .host_compiler_from = "the flag -ccbin"});
  EXPECT_THAT(missing.status().ToString(), AllOf(HasSubstr("the flag -ccbin"), HasSubstr("nope")));
}

TEST_F(ToolchainFinderTest, NoCompilerSaysWhereItLookedAndWhatToInstall) {
  const auto paths = Find({});
  EXPECT_EQ(KindOf(paths.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(paths.status().ToString(), AllOf(HasSubstr("CXX"), HasSubstr("clang++"), HasSubstr(folder_ / "bin"),
                                               HasSubstr("apt-get install g++")));
}

TEST_F(ToolchainFinderTest, NvccIsLookedForInOrder) {
  folder_.WriteProgram("bin/g++");
  folder_.WriteProgram("site/nvidia/cu13/bin/nvcc");
  if (!MachineHasToolkit()) {
    EXPECT_EQ(NvccOf({}), folder_ / "site/nvidia/cu13/bin/nvcc");
  }
  folder_.WriteProgram("bin/nvcc");
  EXPECT_EQ(NvccOf({}), folder_ / "bin/nvcc");
  EXPECT_EQ(NvccOf({{"BRAINEVENT_NVCC_PREFER", "pip"}}), folder_ / "site/nvidia/cu13/bin/nvcc");
  folder_.WriteProgram("path/bin/nvcc");
  EXPECT_EQ(NvccOf({{"CUDA_PATH", folder_ / "path"}}), folder_ / "path/bin/nvcc");
  folder_.WriteProgram("home/bin/nvcc");
  EXPECT_EQ(NvccOf({{"CUDA_PATH", folder_ / "path"}, {"CUDA_HOME", folder_ / "home"}}), folder_ / "home/bin/nvcc");
  EXPECT_EQ(NvccOf({{"CUDA_HOME", folder_ / "without-nvcc"}}), folder_ / "bin/nvcc");
  folder_.WriteProgram("mine");
  EXPECT_EQ(NvccOf({{"CUDA_HOME", folder_ / "home"}, {"BRAINEVENT_NVCC_PATH", folder_ / "mine"}}), folder_ / "mine");
}

// Debian 12 has such an nvcc in /usr: it is too old, and the wheels' nvcc is used.
TEST_F(ToolchainFinderTest, AToolkitThatIsTooOldIsPassedOverByName) {
  if (MachineHasToolkit()) GTEST_SKIP() << "this machine has a toolkit in /usr/local/cuda";
  folder_.WriteProgram("bin/g++");
  folder_.WriteProgram("bin/nvcc");
  folder_.Write("include/cuda.h", "// CUDA\n#define CUDA_VERSION 11080\n");
  const auto none = Find({}, Cuda());
  EXPECT_THAT(none.status().ToString(), HasSubstr(StrCat(folder_ / "bin/nvcc", " (CUDA 11.8, too old)")));
  folder_.WriteProgram("site/nvidia/cu13/bin/nvcc");
  EXPECT_EQ(NvccOf({}), folder_ / "site/nvidia/cu13/bin/nvcc");
  for (const size_t at : {size_t{32'750}, size_t{100'000}}) {  // where its beginning ends, and behind it
    folder_.Write("include/cuda.h", StrCat(std::string(at, '\n'), "#define CUDA_VERSION 11080\n"));
    EXPECT_EQ(NvccOf({}), folder_ / "site/nvidia/cu13/bin/nvcc") << at;
  }
  folder_.Write("include/cuda.h", "#define CUDA_VERSION 12000\n");
  EXPECT_EQ(NvccOf({}), folder_ / "bin/nvcc");
}

TEST_F(ToolchainFinderTest, TheWheelsOfCuda13LieInOneFolder) {
  folder_.WriteProgram("bin/g++");
  folder_.WriteProgram("site/nvidia/cu13/bin/nvcc");
  folder_.Write("site/nvidia/cu13/include/cuda.h", "");
  folder_.Write("site/nvidia/cu13/lib/libcudart_static.a", "");
  folder_.WriteProgram("site/nvidia/cuda_nvcc/bin/nvcc");
  const auto paths = Find({{"BRAINEVENT_NVCC_PREFER", "pip"}}, Cuda());
  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_EQ(paths->nvcc(), folder_ / "site/nvidia/cu13/bin/nvcc");
  EXPECT_THAT(paths->cuda_include_directories(), ElementsAre(folder_ / "site/nvidia/cu13/include"));
  EXPECT_THAT(paths->cuda_library_directories(), ElementsAre(folder_ / "site/nvidia/cu13/lib"));
}

TEST_F(ToolchainFinderTest, TheWheelsOfCuda12LieBesideEachOther) {
  folder_.WriteProgram("bin/g++");
  folder_.WriteProgram("site/nvidia/cuda_nvcc/bin/nvcc");
  folder_.Write("site/nvidia/cuda_nvcc/include/fatbinary.h", "");
  folder_.Write("site/nvidia/cuda_runtime/include/cuda.h", "");
  folder_.Write("site/nvidia/cuda_runtime/lib/libcudart.so.12", "");
  folder_.Write("site/nvidia/__pycache__/x", "");
  const auto paths = Find({{"CUDA_HOME", folder_ / "site/nvidia/cuda_nvcc"}}, Cuda());
  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_THAT(paths->cuda_include_directories(),
              ElementsAre(folder_ / "site/nvidia/cuda_nvcc/include", folder_ / "site/nvidia/cuda_runtime/include"));
  EXPECT_THAT(paths->cuda_library_directories(), ElementsAre(folder_ / "site/nvidia/cuda_runtime/lib"));
}

TEST_F(ToolchainFinderTest, AToolkitInOnePieceNeedsNoFolders) {
  folder_.WriteProgram("bin/g++");
  folder_.WriteProgram("cuda/bin/nvcc");
  folder_.Write("cuda/include/cuda.h", "");
  const auto paths = Find({{"CUDA_HOME", folder_ / "cuda"}}, Cuda());
  EXPECT_THAT(paths->cuda_include_directories(), IsEmpty());
}

// cuBLAS and similar libraries come with JAX, even where nvcc does not.
TEST_F(ToolchainFinderTest, WheelsBringLibrariesToAToolkitOfTheirVersion) {
  folder_.WriteProgram("bin/g++");
  folder_.WriteProgram("cuda/bin/nvcc");
  folder_.Write("site/nvidia/cu13/include/cublas_v2.h", "");
  folder_.Write("site/nvidia/cu13/lib/libcublas.so.13", "");
  folder_.Write("site/nvidia/cublas/include/cublas_v2.h", "");
  folder_.Write("site/nvidia/cublas/lib/libcublas.so.12", "");
  const auto include_folders = [&](const std::string& version) {
    folder_.Write("cuda/include/cuda.h", StrCat("#define CUDA_VERSION ", version, "\n"));
    const auto paths = Find({{"CUDA_HOME", folder_ / "cuda"}}, Cuda());
    return std::vector<std::string>(paths->cuda_include_directories().begin(), paths->cuda_include_directories().end());
  };
  EXPECT_THAT(include_folders("13020"), ElementsAre(folder_ / "site/nvidia/cu13/include"));
  EXPECT_THAT(include_folders("12080"), ElementsAre(folder_ / "site/nvidia/cublas/include"));
  EXPECT_THAT(include_folders("14000"), IsEmpty());
}

TEST_F(ToolchainFinderTest, NoNvccSaysWhereItLookedAndWhatToInstall) {
  if (MachineHasToolkit()) GTEST_SKIP() << "this machine has a toolkit in /usr/local/cuda";
  folder_.WriteProgram("bin/g++");
  const auto paths = Find({{"CUDA_HOME", folder_ / "empty"}}, Cuda());
  EXPECT_EQ(KindOf(paths.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(paths.status().ToString(),
              AllOf(HasSubstr(folder_ / "empty/bin/nvcc"), HasSubstr("$CUDA_PATH (not set)"),
                    HasSubstr(StrCat("NVIDIA's wheels in ", folder_ / "site", " (none)")),
                    HasSubstr("pip install nvidia-cuda-nvcc"), Not(HasSubstr("--site-packages"))));
  const auto without_wheels = Find({}, {.language = v1::LANGUAGE_CUDA});
  EXPECT_THAT(without_wheels.status().ToString(), HasSubstr("name one with --site-packages (kernixctl)"));
}

TEST_F(ToolchainFinderTest, AWrongNvccPathIsNamed) {
  const auto paths = Find({{"BRAINEVENT_NVCC_PATH", folder_ / "none"}}, Cuda());
  EXPECT_THAT(paths.status().ToString(), AllOf(HasSubstr("BRAINEVENT_NVCC_PATH"), HasSubstr(folder_ / "none")));
}

TEST_F(ToolchainFinderTest, FindsTheCompilerOfThisMachine) {
  const auto paths = FindToolchain(Env::Posix(), ProcessGetEnv, {});
  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_EQ(paths->host_compiler()[0], '/');
  EXPECT_EQ(paths->nvcc(), "");
}

}  // namespace

}  // namespace kernix
