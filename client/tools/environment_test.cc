// SPDX-License-Identifier: Apache-2.0
#include "client/tools/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Variables;

TEST(CompilerEnvironmentTest, NothingAsksForNothing) {
  const auto environment =
      ReadCompilerEnvironment(Variables({{"CXXFLAGS", "-O0"}, {"LDFLAGS", "-lx"}}), v1::LANGUAGE_CUDA);
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(environment->include_paths, IsEmpty());
  EXPECT_THAT(environment->flags_before, IsEmpty());
  EXPECT_THAT(environment->warnings, IsEmpty());
}

TEST(CompilerEnvironmentTest, ReadsPathsAsTheCompilersDo) {
  const auto environment = ReadCompilerEnvironment(
      Variables({{"CPATH", "/a:/b"}, {"CPLUS_INCLUDE_PATH", ":/c"}, {"LIBRARY_PATH", "/d:/e"}}), v1::LANGUAGE_CPP);
  EXPECT_THAT(environment->include_paths, ElementsAre("/a", "/b"));
  EXPECT_THAT(environment->system_include_paths, ElementsAre(".", "/c"));
  EXPECT_THAT(environment->library_paths, ElementsAre("/d", "/e"));
}

TEST(CompilerEnvironmentTest, NvccsVariablesAreForCuda) {
  const GetEnv get_env = Variables({{"NVCC_PREPEND_FLAGS", "-ccbin '/opt/my gcc/g++'"},
                                    {"NVCC_APPEND_FLAGS", "-DA -lineinfo"},
                                    {"NVCC_CCBIN", "g++-12"},
                                    {"BRAINEVENT_ALLOW_UNSUPPORTED_COMPILER", "Yes"},
                                    {"BRAINEVENT_COMPUTE_CAPABILITIES", "8.0,9.0"}});
  const auto cuda = ReadCompilerEnvironment(get_env, v1::LANGUAGE_CUDA);
  EXPECT_THAT(cuda->flags_before, ElementsAre("-ccbin", "/opt/my gcc/g++", "-allow-unsupported-compiler"));
  EXPECT_THAT(cuda->flags_after, ElementsAre("-DA", "-lineinfo"));
  EXPECT_EQ(cuda->host_compiler, "g++-12");
  EXPECT_EQ(cuda->compute_capability, "8.0,9.0");
  const auto cpp = ReadCompilerEnvironment(get_env, v1::LANGUAGE_CPP);
  EXPECT_THAT(cpp->flags_before, IsEmpty());
  EXPECT_EQ(cpp->compute_capability, "");
}

TEST(CompilerEnvironmentTest, WhatHasNoEffectIsNamed) {
  const auto environment = ReadCompilerEnvironment(Variables({{"BRAINEVENT_COMPILE_TIMEOUT", "10"},
                                                              {"BRAINEVENT_CACHE_DIR", "/x"},
                                                              {"COMPILER_PATH", "/y"},  // for a compiler that needs it
                                                              {"GCC_EXEC_PREFIX", "/y"},
                                                              {"C_INCLUDE_PATH", "/z"}}),
                                                   v1::LANGUAGE_CPP);
  EXPECT_THAT(environment->warnings,
              ::testing::UnorderedElementsAre(HasSubstr("BRAINEVENT_COMPILE_TIMEOUT"),
                                              HasSubstr("BRAINEVENT_CACHE_DIR"), HasSubstr("C_INCLUDE_PATH")));
}

TEST(CompilerEnvironmentTest, AnUnknownPreferenceIsNamed) {
  const auto environment = ReadCompilerEnvironment(Variables({{"BRAINEVENT_NVCC_PREFER", "conda"}}), v1::LANGUAGE_CUDA);
  EXPECT_THAT(environment->warnings, ElementsAre(HasSubstr("\"conda\"")));
}

TEST(UnknownVariableWarningsTest, NameWhatNobodyKnows) {
  EXPECT_THAT(
      UnknownVariableWarnings({"PATH=/bin", "BRAINEVENT_NVCC_PATH=x", "BRAINEVENT_CACHE_DIR=x",
                               "BRAINEVENT_CAHCE_DIR=x", "MY_BRAINEVENT_X=x", "KERNIX_CACHE_DIR=x", "KERNIX_CACHEDIR=x",
                               "KERNIX_TEST_NVCC=x", "KERNIXD=x"}),
      ElementsAre(HasSubstr("BRAINEVENT_CAHCE_DIR has no effect"),
                  AllOf(HasSubstr("KERNIX_CACHEDIR has no effect"), HasSubstr("Did you mean KERNIX_CACHE_DIR?"))));
}

TEST(ProcessVariablesTest, AreThoseOfTheProcess) {
  setenv("BRAINEVENT_OF_A_TEST", "a=b", 1);
  EXPECT_THAT(ProcessVariables(), ::testing::Contains("BRAINEVENT_OF_A_TEST=a=b"));
  unsetenv("BRAINEVENT_OF_A_TEST");
}

TEST(GetEnvOfTest, AnswersAsTheProcessItselfWould) {
  const GetEnv get_env = GetEnvOf({"CXX=g++ -DA=B", "CXXFLAGS=-O0", "CPATH=", "CXX=the second does not count"});
  EXPECT_EQ(get_env("CXX"), "g++ -DA=B");
  EXPECT_EQ(get_env("CPATH"), std::nullopt);
  EXPECT_EQ(get_env("CX"), std::nullopt);
  EXPECT_EQ(get_env("CXXFLAGS="), std::nullopt);
}

TEST(CompilerEnvironmentTest, AnUnreadableVariableIsNamed) {
  const auto environment = ReadCompilerEnvironment(Variables({{"NVCC_APPEND_FLAGS", "-DX='"}}), v1::LANGUAGE_CUDA);
  EXPECT_EQ(KindOf(environment.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(environment.status().ToString(), HasSubstr("NVCC_APPEND_FLAGS"));
}

TEST(IsFirstWarningTest, IsTrueOnce) {
  EXPECT_TRUE(IsFirstWarning("environment_test: a"));
  EXPECT_FALSE(IsFirstWarning("environment_test: a"));
  EXPECT_TRUE(IsFirstWarning("environment_test: b"));
}

using ::testing::Optional;

GetEnv With(const std::string& switches) { return GetEnvOf({"KERNIX_WARNINGS=" + switches}); }

TEST(ShownWarningTest, SaysHowToSwitchItOff) {
  EXPECT_THAT(ShownWarning(GetEnvOf({}), warning::kCudaHome, "text."),
              Optional(std::string("text. [KERNIX_WARNINGS=no-cuda-home]")));
}

TEST(ShownWarningTest, IsNotShownIfItIsSwitchedOff) {
  for (const char* switches :
       {"no-cuda-home", "no-only-results,no-cuda-home", "no-only-results, no-cuda-home", "none"}) {
    EXPECT_EQ(ShownWarning(With(switches), warning::kCudaHome, "text"), std::nullopt) << switches;
  }
  for (const char* switches : {"", "no-only-results", "cuda-home"}) {
    EXPECT_NE(ShownWarning(With(switches), warning::kCudaHome, "text"), std::nullopt) << switches;
  }
}

TEST(WarningsAboutSwitchesTest, NameWhatSwitchesNothingOff) {
  EXPECT_THAT(WarningsAboutSwitches(With("none,no-cuda-home")), IsEmpty());
  EXPECT_THAT(WarningsAboutSwitches(With("no-cuda-hom")),
              ElementsAre(AllOf(HasSubstr("\"no-cuda-hom\""), HasSubstr("Did you mean no-cuda-home?"),
                                HasSubstr("no-hidden-function"))));
}

}  // namespace

}  // namespace kernix
