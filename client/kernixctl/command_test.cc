// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "common/base/error.h"

namespace kernix::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome Ctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "kernixctl");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = Main(static_cast<int>(argv.size()), argv.data());
  std::string out = testing::internal::GetCapturedStdout();
  return {code, std::move(out), testing::internal::GetCapturedStderr()};
}

const char kNobody[] = "/nonexistent/kernixd.sock";

// `command` and all commands below it, as `arguments` name it.
void ExpectExamples(const Command& command, const std::vector<std::string>& arguments) {
  const auto with = [&arguments](const std::string& word) {
    std::vector<std::string> more = arguments;
    more.push_back(word);
    return more;
  };
  const Outcome outcome = Ctl(with("--help"));
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, HasSubstr("Examples:\n  kernixctl ")) << command.name;
  for (const Command& each : command.subcommands) ExpectExamples(each, with(each.name));
}

TEST(CommandTest, EveryHelpHasExamples) {
  ClientOptions options;
  ExpectExamples(RootCommand(options), {});
}

// In the words of the manual page.
TEST(CommandTest, HelpSaysWhatAValueIs) {
  const std::string root = Ctl({"--help"}).out;
  EXPECT_THAT(root, AllOf(HasSubstr("--address FILE "), HasSubstr("--store DIR ")));
  const std::string compile = Ctl({"compile", "--help"}).out;
  EXPECT_THAT(compile, AllOf(HasSubstr("--arch TEXT "), HasSubstr("--output FILE "), HasSubstr("-O N "),
                             HasSubstr("--print ptx|sass|"), HasSubstr("--jobs N "), HasSubstr("file ... REQUIRED")));
}

TEST(CommandTest, VersionIsTold) {
  const Outcome outcome = Ctl({"--version"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, HasSubstr("kernixctl "));
}

TEST(CommandTest, BadFlagsAreAUsageError) {
  EXPECT_EQ(Ctl({}).code, kUsage);
  EXPECT_EQ(Ctl({"nonsense"}).code, kUsage);
  EXPECT_EQ(Ctl({"status", "--nonsense"}).code, kUsage);
  EXPECT_EQ(Ctl({"compile"}).code, kUsage);
  EXPECT_EQ(Ctl({"compile", "kernel.txt"}).code, kUsage);
  EXPECT_EQ(Ctl({"compile", "a.cu", "b.cu", "-o", "out.so"}).code, kUsage);
  EXPECT_EQ(Ctl({"shutdown", "--drain", "soon"}).code, kUsage);
}

TEST(CommandTest, AnUnknownWordIsNamedWithTheNearest) {
  EXPECT_EQ(Ctl({"complie", "x"}).err,
            "kernixctl: kernixctl does not know complie. Did you mean compile? See --help.\n");
  EXPECT_EQ(Ctl({"cache", "lst"}).err, "kernixctl: cache does not know lst. Did you mean list? See --help.\n");
  EXPECT_EQ(Ctl({"compile", "k.cu", "--fource=1"}).err,
            "kernixctl: compile does not know --fource. Did you mean --force? See --help.\n");
  EXPECT_EQ(Ctl({"status", "now"}).err, "kernixctl: status does not know now. See --help.\n");
  EXPECT_THAT(Ctl({"tune", "k.cu"}).err, HasSubstr("Did you mean `python -m kernix tune`?"));
  EXPECT_EQ(
      Ctl({"cache", "stats", "--store", "/s"}).err,
      "kernixctl: stats does not know --store. It stands before the command: kernixctl --store PLACE. See --help.\n");
  EXPECT_EQ(Ctl({"-q", "status"}).err, "kernixctl: kernixctl does not know -q. See --help.\n");
  EXPECT_EQ(Ctl({"--store", "/s", "cache"}).err, "kernixctl: A subcommand is required. See --help.\n");
}

TEST(CommandTest, FilesOfOneNameCannotShareABuildDirectory) {
  const std::vector<std::string> compile = {"--address", kNobody, "compile", "one/a.cpp", "b.cpp", "two/a.cc"};
  const auto with = [&compile](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = compile;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Ctl(arguments);
  };
  const Outcome outcome = with({"--build-directory", "out"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("one/a.cpp and two/a.cc would have the same names in --build-directory"));
  EXPECT_NE(with({"--build-directory", "out", "--name", "both"}).code, kUsage);
  EXPECT_NE(with({}).code, kUsage);
}

TEST(CommandTest, WhatIsForCudaOnlyIsNamedAsItWasWritten) {
  const Outcome outcome = Ctl({"--address", kNobody, "compile", "a.cu", "b.cpp", "--print", "resources"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--print resources is for CUDA sources only; b.cpp is C++"));
  EXPECT_NE(Ctl({"--address", kNobody, "compile", "b.cpp", "--print", "source"}).code, kUsage);
}

TEST(CommandTest, AnOptionOfTheClientIsNamedAsKernixctlNamesIt) {
  const std::string file = testing::TempDir() + "k.cpp";
  std::ofstream(file) << "void k();\n";
  const Outcome outcome = Ctl({"--address", kNobody, "compile", file, "--arch", "sm_90"});
  EXPECT_THAT(outcome.err, HasSubstr("compute_capability is for CUDA sources only\nIn kernixctl, compute_capability is "
                                     "--arch."));
}

TEST(CommandTest, NumbersOfJobsAreToldShortly) {
  const Outcome outcome = Ctl({"--address", kNobody, "compile", "a.cu", "--jobs", "0"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("4294967295"));
}

TEST(CommandTest, APurgeMustSayWhat) {
  const Outcome outcome = Ctl({"--address", kNobody, "cache", "purge"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--name"));
  EXPECT_THAT(outcome.err, HasSubstr("--older-than"));
  EXPECT_THAT(outcome.err, HasSubstr("--all"));
  EXPECT_EQ(Ctl({"--address", kNobody, "cache", "purge", "--older-than", "long"}).code, kUsage);
  EXPECT_EQ(Ctl({"--address", kNobody, "cache", "purge", "--all", "--name", "x"}).code, kUsage);
}

TEST(CommandTest, WithoutADaemonTheExitCodeSaysSo) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"status"},
                                                                                       {"metrics"},
                                                                                       {"shutdown"},
                                                                                       {"reload"},
                                                                                       {"cache", "stats"},
                                                                                       {"cache", "list"},
                                                                                       {"cache", "show", "00"},
                                                                                       {"trace", "00"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.begin(), {"--address", kNobody});
    const Outcome outcome = Ctl(arguments);
    EXPECT_EQ(outcome.code, kNoDaemon) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(kNobody));
  }
}

TEST(CommandTest, EachKindOfFailureHasItsExitCode) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Fail(MakeError(v1::ErrorDetail::COMPILATION, "x")), kCompilation);
  EXPECT_EQ(Fail(MakeError(v1::ErrorDetail::TOOLCHAIN, "x")), kToolchain);
  EXPECT_EQ(Fail(MakeError(v1::ErrorDetail::CANCELLED, "x")), kInterrupted);
  EXPECT_EQ(Fail(MakeError(v1::ErrorDetail::UNREACHABLE, "x")), kNoDaemon);
  EXPECT_EQ(Fail(absl::InternalError("x")), kFailure);
  testing::internal::GetCapturedStderr();
}

TEST(CommandTest, ACompileErrorShowsWhatTheCompilerSaidOnce) {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::COMPILATION);
  detail.set_message("k.cpp does not compile");
  detail.set_compiler_output("k.cpp:3:1: error: no\n");
  detail.set_command("g++ -c k.cpp");
  testing::internal::CaptureStderr();
  Fail(MakeError(detail));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "kernixctl: k.cpp does not compile\nk.cpp:3:1: error: no\n");
}

TEST(OptionWordsTest, AnErrorThatNamesAnOptionOfPythonGetsKernixctlsWord) {
  EXPECT_EQ(WithOwnWords("pass compute_capability=\"sm_90\""),
            "pass compute_capability=\"sm_90\"\nIn kernixctl, compute_capability is --arch.");
  EXPECT_EQ(WithOwnWords("in extra_cflags (extra_cuda_cflags for CUDA)"),
            "in extra_cflags (extra_cuda_cflags for CUDA)\n"
            "In kernixctl, extra_cflags is --flag, extra_cuda_cflags is --flag.");
  EXPECT_EQ(WithOwnWords("or pass 'functions'"), "or pass 'functions'\nIn kernixctl, 'functions' is --function.");
  EXPECT_EQ(WithOwnWords("k.cpp does not compile"), "k.cpp does not compile");
}

}  // namespace

}  // namespace kernix::ctl
