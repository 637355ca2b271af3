// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/failure.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

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
      // nvcc
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

}  // namespace
}  // namespace kernix::build
