// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/shared_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kMarker[] = "marrowbone";  // in a file of the service that is in no request

class SharedOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
    ASSERT_THAT(Env::Posix().WriteFile(secret_, StrCat(kMarker, " one;\n", kMarker, " two;\n"), 0644), IsOk());
  }

  v1::LoadRequest With(const std::string& text, const std::vector<std::string>& flags = {}) const {
    return Add(CppRequest(compiler_), text, flags);
  }
  static v1::LoadRequest Add(v1::LoadRequest request, const std::string& text, const std::vector<std::string>& flags) {
    request.mutable_source(0)->mutable_text()->append(text);
    for (const std::string& flag : flags) request.mutable_options()->add_compile_flags(flag);
    request.set_verbose(true);
    return request;
  }

  // Makes a load that must fail; its error must not show the marker.
  v1::ErrorDetail Failure(const v1::LoadRequest& request, const std::vector<std::string>& headers = {}) {
    RecordingObserver observer(headers);
    const auto result = t_.Load(request, observer);
    EXPECT_FALSE(result.ok()) << request.source(0).text();
    if (result.ok()) return {};
    v1::ErrorDetail detail = GetErrorDetail(result.status());
    for (const std::string& shown : {detail.message(), detail.compiler_output(), observer.output}) {
      EXPECT_THAT(shown, Not(HasSubstr(kMarker))) << request.source(0).text();
    }
    EXPECT_EQ(t_.Stats().entries, 0u);
    return detail;
  }

  const ScratchDirectory folder_;
  const std::string secret_ = folder_ / "secret";
  const std::string missing_ = folder_ / "missin";
  std::string compiler_;
  TestBuilder t_{TestBuilder::On::kLocalExecutor, {.flag_policy = toolchain::FlagPolicy::kShared}};
};

TEST_F(SharedOutputTest, AnErrorShowsTheUsersLineAndAMark) {
  const v1::ErrorDetail detail = Failure(With("int x =\ty;\n"));
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(detail.message(), StartsWith("compile failed: kernel.cc:8:"));
  EXPECT_THAT(detail.compiler_output(), HasSubstr("\n    8 | int x = y;\n      |         ^\n"));
  EXPECT_THAT(detail.compiler_output(), Not(HasSubstr("\n. ")));
}

TEST_F(SharedOutputTest, AnErrorInAHeaderShowsItsLine) {
  v1::LoadRequest request = With("#include \"h.h\"\n");
  const std::string header = "#pragma once\nint h = g;\n";
  AddHeader(request, 0, "h.h", header);
  EXPECT_THAT(Failure(request, {header}).compiler_output(),
              AllOf(HasSubstr("inc/0/h.h:2:9: error: "), HasSubstr("\n    2 | int h = g;\n      |         ^\n")));
}

TEST_F(SharedOutputTest, WhatThePreprocessorSaysIsShown) {
  EXPECT_THAT(Failure(With("#include \"nothere.h\"\n")).message(),
              HasSubstr("kernel.cc:8:10: fatal error: nothere.h: No such file"));
  EXPECT_THAT(Failure(With("#error too old\n")).message(), HasSubstr("kernel.cc:8:2: error: #error too old"));
  EXPECT_THAT(Failure(With("void g(); static void* p = (void*)&g; void h() { g(); }\n")).message(),
              HasSubstr("undefined reference to `g()'"));
}

TEST_F(SharedOutputTest, WarningsOfABuildThatSucceedsAreShown) {
  RecordingObserver observer;
  EXPECT_THAT(t_.Load(With("static int unused() { return 1; }\n", {"-Wall"}), observer), IsOk());
  EXPECT_THAT(observer.output,
              AllOf(HasSubstr("kernel.cc:8:12: warning: "), HasSubstr("    8 | static int unused() { return 1; }\n")));
}

TEST_F(SharedOutputTest, LinesOfOtherFilesAreNotShown) {
  const std::string line = StrCat("#line 1 \"", secret_, "\"\n");
  EXPECT_THAT(Failure(With(line + "int x = y;\n")).message(), HasSubstr("error: "));
  EXPECT_THAT(Failure(With(line + "int x = y;\n", {"-fdiagnostics-show-caret"})).message(), HasSubstr("error: "));
  RecordingObserver observer;
  EXPECT_THAT(t_.Load(With(line + "static int unused() { return 1; }\n", {"-Wall"}), observer), IsOk());
  EXPECT_THAT(observer.output, AllOf(HasSubstr("warning: "), Not(HasSubstr(kMarker))));
}

// Ways to spell an include that no check of the line sees; %s is the file.
constexpr const char* kIncludes[] = {
    "#define WHERE \"%s\"\n#include WHERE\n",
    "#define WHERE <%s>\n#include_next WHERE\n",
    "#define WHERE \"%s\"\n#import WHERE\n",
    "%%:include \"%s\"\n",
    "#inc\\\nlude \"%s\"\n",
    "?\?=include \"%s\"\n",
    "#include \"/proc/self/root%s\"\n",
    "#define WHERE </proc/self/cwd/../../../../../../../../../../..%s>\n#include WHERE\n",
    "#define WHERE \"../../../../../../../../../../../../..%s\"\n#include WHERE\n",
    "#include \"../../../../../../../../../../../../..%s\"\n",
    "#define Q(x) #x\n#define S(x) Q(x)\n#include S(%s)\n",
    "#define WHERE \"%s\"\n#pragma push_macro(\"WHERE\")\n#undef WHERE\n#pragma pop_macro(\"WHERE\")\n#include WHERE\n",
    "#define WHERE \"%s\"\n#include WHERE\n#include \"nothere.h\"\n",
    "#pragma GCC dependency \"%s\"\n",
    "#define P(x) _Pragma(#x)\nP(GCC dependency \"%s\")\n",
};

std::string Naming(std::string text, const std::string& path) {
  for (size_t at = 0; (at = text.find('%', at)) != std::string::npos;) {
    const std::string what = text[at + 1] == '%' ? "%" : path;
    text.replace(at, 2, what);
    at += what.size();
  }
  return text;
}

TEST_F(SharedOutputTest, AFileOutsideTheRequestIsNotShownNorWhetherItIsThere) {
  for (const char* include : kIncludes) {
    const v1::ErrorDetail there = Failure(With(Naming(include, secret_), {"-trigraphs"}));
    EXPECT_EQ(there.kind(), v1::ErrorDetail::INVALID_REQUEST) << there.message();
    v1::ErrorDetail missing = Failure(With(Naming(include, missing_), {"-trigraphs"}));
    std::string message = missing.message();
    if (const size_t at = message.find(missing_); at != std::string::npos)
      message.replace(at, missing_.size(), secret_);
    EXPECT_EQ(message, there.message()) << include;
    EXPECT_EQ(missing.kind(), there.kind());
  }
}

TEST_F(SharedOutputTest, AHeaderOfTheToolchainMayNotIncludeItEither) {
  v1::LoadRequest request = With("#include \"config.h\"\n");
  const std::string header = StrCat("#define CONFIG \"", secret_, "\"\n#include CONFIG\n");
  AddHeader(request, 0, "config.h", header);
  EXPECT_EQ(Failure(request, {header}).kind(), v1::ErrorDetail::INVALID_REQUEST);
}

// The compile step succeeds; the linker would reveal what it has read.
TEST_F(SharedOutputTest, WhatAnEarlierStepHasReadIsNotToldByTheLink) {
  ASSERT_THAT(Env::Posix().WriteFile(secret_, StrCat("int ", kMarker, "();"), 0644), IsOk());
  EXPECT_EQ(
      Failure(
          With(Naming(
              "#define J(a, b) a##b\n#define WHERE \"%s\"\n#include WHERE\nint use() { return J(marrow, bone)(); }\n",
              secret_)))
          .kind(),
      v1::ErrorDetail::INVALID_REQUEST);
}

TEST_F(SharedOutputTest, TheAssemblersWordsAreShownWhereItCannotRead) {
  const v1::ErrorDetail detail = Failure(With("void g() {\n  asm volatile(\"frobnicate %eax\");\n}\n"));
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(detail.message(), HasSubstr("kernel.cc:9: Error: no such instruction: `frobnicate %eax'"));
  EXPECT_THAT(detail.compiler_output(), HasSubstr("    9 |   asm volatile(\"frobnicate %eax\");\n"));
}

TEST_F(SharedOutputTest, TheAssemblersWordsAreNotShownWhereItMayRead) {
  for (const char* text : {"asm(\"\\056include \\\"%s\\\"\");\n", "asm(\".inc\" \"lude \\\"%s\\\"\");\n",
                           "asm(\".INC\" \"LUDE \\\"%s\\\"\");\n",
                           "asm(\".macro m a b\\n .\\\\a\\\\b \\\"%s\\\"\\n.endm\\nm inc lude\\n\");\n",
                           "asm(\".irp a, inc\\n .\\\\a\\\\()lude \\\"%s\\\"\\n.endr\\n\");\n",
                           "#define Q(x) #x\n#define S(x) Q(x)\nasm(S(.include) \" \\\"%s\\\"\");\n",
                           "void g() asm(\"g\\n.inc\" \"lude \\\"%s\\\"\\n\");\nvoid g() {}\n",
                           "int x __attribute__((section(\".data;.inc\" \"lude \\\"%s\\\";\"))) = 1;\n"}) {
    EXPECT_THAT(Failure(With(Naming(text, secret_))).message(), Not(HasSubstr("no such instruction"))) << text;
  }
}

TEST_F(SharedOutputTest, AnswersAboutFilesAreNotToldByFailures) {
  const v1::ErrorDetail detail = Failure(With(Naming(
      "#include \"asks.h\"\n#define P \"%s\"\n#if __has_include(P)\n#error there\n#endif\n#error end\n", secret_)));
  EXPECT_THAT(detail.message(), Not(HasSubstr("there")));
}

TEST_F(SharedOutputTest, Clang) {
  KERNIX_NEED_PROGRAM(clang, "clang++");
  compiler_ = clang;
  EXPECT_THAT(Failure(With("int x = y;\n")).compiler_output(), HasSubstr("\n    8 | int x = y;\n      |         ^\n"));
  EXPECT_THAT(Failure(With(Naming("#line 1 \"%s\"\nint x = y;\n", secret_))).message(), HasSubstr("error: "));
  for (const char* include :
       {"#define WHERE \"%s\"\n#include WHERE\n", "#define WHERE \"%s\"\n#include WHERE\n#include \"nothere.h\"\n"}) {
    EXPECT_EQ(Failure(With(Naming(include, secret_))).kind(), v1::ErrorDetail::INVALID_REQUEST) << include;
    EXPECT_EQ(Failure(With(Naming(include, missing_))).kind(), v1::ErrorDetail::INVALID_REQUEST) << include;
  }
  EXPECT_THAT(Failure(With("#include \"nothere.h\"\n")).message(),
              HasSubstr("kernel.cc:8:10: fatal error: 'nothere.h' file not found"));
  Failure(With(Naming("asm(\".macro m a b\\n .\\\\a\\\\b \\\"%s\\\"\\n.endm\\nm inc lude\\n\");\n", secret_)));
  EXPECT_THAT(Failure(With("void g() { asm volatile(\"frobnicate %eax\"); }\n")).compiler_output(),
              HasSubstr("frobnicate"));
  ASSERT_THAT(Env::Posix().WriteFile(secret_, StrCat(".print \"", kMarker, "\"\n.warning \"", kMarker, "\"\n"), 0644),
              IsOk());
  // Clang's own assembler would have put the file into the artifact without reporting it.
  for (const char* words : {"inc lude", "inc bin"}) {
    const std::string text = StrCat("asm(\".macro m a b\\n .\\\\a\\\\b \\\"%s\\\"\\n.endm\\nm ", words, "\\n\");\n");
    EXPECT_EQ(Failure(With(Naming(text, secret_))).kind(), v1::ErrorDetail::INVALID_REQUEST) << words;
  }
  EXPECT_THAT(Failure(With("", {"-flto"})).message(), HasSubstr("link-time optimisation"));
  RecordingObserver observer;
  EXPECT_THAT(t_.Load(With("static int unused() { return 1; }\nasm(\".warning \\\"mine\\\"\");\n", {"-Wall"}), observer)
                  .status(),
              IsOk());
  EXPECT_THAT(observer.output, AllOf(HasSubstr("unused"), HasSubstr("mine")));
}

// Whether or not the file exists, and whatever the message looks like.
TEST_F(SharedOutputTest, NoFormOfAMessageHidesWhatWasNotRead) {
  for (const std::string& path : {secret_, missing_}) {
    for (const char* flag : {"-fdiagnostics-color=always", "-fdiagnostics-color"}) {
      EXPECT_EQ(Failure(With(Naming("#define S \"%s\"\n#include S\nint x = y;\n", path), {flag})).kind(),
                v1::ErrorDetail::INVALID_REQUEST)
          << path;
    }
    v1::LoadRequest quoted = With(Naming(
        "#define S \"inc/0/'a'/../../../../../../../../../../../..%s\"\n#include \"'a'/h.h\"\n#include S\nint x = y;\n",
        path));
    AddHeader(quoted, 0, "'a'/h.h", "");
    EXPECT_EQ(Failure(quoted, {""}).kind(), v1::ErrorDetail::INVALID_REQUEST) << path;
    v1::LoadRequest left = With(Naming("#include \"leave.h\"\n#define S \"%s\"\n#include S\n", path));
    AddHeader(left, 0, "leave.h", "# 1 \"k.cc\" 2\n");
    EXPECT_EQ(Failure(left, {"# 1 \"k.cc\" 2\n"}).kind(), v1::ErrorDetail::INVALID_REQUEST) << path;
    for (const char* pragma :
         {"_Pragma(\"GCC  dependency \\\"%s\\\"\")\n", "_Pragma(\" GCC dependency \\\"%s\\\"\")\n"}) {
      EXPECT_EQ(Failure(With(Naming(pragma, path))).kind(), v1::ErrorDetail::INVALID_REQUEST) << path;
    }
  }
}

// nvcc's tools read the preprocessor's output once more.
TEST_F(SharedOutputTest, NvccReadsNoDirectiveThatMacrosMake) {
  KERNIX_NEED_NVCC(nvcc);
  for (const char* text : {"#define HASH #\nHASH include \"%s\"\n", "#define ID(x) x\nID(%%:) include \"%s\"\n",
                           "#define ID(x) x\nID(#) include \"%s\"\n", "#define P(a) a##:\nP(%%) include \"%s\"\n",
                           "#define P(a, b) a##b\nP(%%, :) include \"%s\"\n"}) {
    EXPECT_EQ(Failure(Add(CudaRequest(compiler_, nvcc), Naming(text, secret_), {})).kind(),
              v1::ErrorDetail::INVALID_REQUEST)
        << text;
  }
  EXPECT_EQ(Failure(Add(CudaRequest(compiler_, nvcc), Naming("HASH include \"%s\"\n", secret_), {"-DHASH=#"})).kind(),
            v1::ErrorDetail::INVALID_REQUEST);
  RecordingObserver observer;
  EXPECT_THAT(
      t_.Load(Add(CudaRequest(compiler_, nvcc), "#define S(x) #x\nconst char* s = S(a # b);\n", {}), observer).status(),
      Not(IsOk()));
  EXPECT_THAT(t_.Load(Add(CudaRequest(compiler_, nvcc),
                          "#define S(x) #x\n#define C(a, b) a##b\nconst char* C(s, t) = S(a b);\n", {}),
                      observer),
              IsOk());
}

TEST_F(SharedOutputTest, Nvcc) {
  KERNIX_NEED_NVCC(nvcc);
  const auto with = [&](const std::string& text, const std::vector<std::string>& flags = {}) {
    return Add(CudaRequest(compiler_, nvcc), Naming(text, secret_), flags);
  };
  const auto own = Failure(with("__global__ void g() { int x = y; }\n"));
  EXPECT_THAT(own.compiler_output(),
              AllOf(HasSubstr("kernel.cu(17): error: identifier \"y\" is undefined"), HasSubstr("int x = y;")));
  EXPECT_THAT(own.compiler_output(), Not(HasSubstr("\n. ")));
  EXPECT_THAT(Failure(with("#include \"nothere.h\"\n")).message(),
              HasSubstr("kernel.cu:17:10: fatal error: nothere.h: No such file"));
  Failure(with("#line 1 \"%s\"\nint x = y;\n#error here\n"));
  for (const char* text :
       {"#define P \"%s\"\n#include P\n", "#define P \"%s\"\n#ifdef __CUDA_ARCH__\n#include P\n#endif\n",
        "#define P \"%s\"\n#ifdef __CUDA_ARCH__\n#include P\n#endif\n#include \"nothere.h\"\n",
        "#define P \"%s\"\n#ifndef __CUDA_ARCH__\n#include P\n#endif\n"}) {
    EXPECT_EQ(Failure(with(text)).kind(), v1::ErrorDetail::INVALID_REQUEST) << text;
  }
  Failure(with("#ifndef __CUDA_ARCH__\nasm(\".inc\" \"lude \\\"%s\\\"\");\n#endif\n"));
  EXPECT_THAT(Failure(with("#ifndef __CUDA_ARCH__\nasm(\"frobnicate %%eax\");\n#endif\n")).message(),
              HasSubstr("no such instruction"));
  Failure(with("#line 1 \"%s\"\nstatic int unused() { return 1; }\n", {"-Xcompiler", "-Wall"}));
  RecordingObserver observer;
  EXPECT_THAT(t_.Load(with("static int unused() { return 1; }\n", {"-Xcompiler", "-Wall"}), observer).status(), IsOk());
  EXPECT_THAT(observer.output, AllOf(HasSubstr("kernel.cu:17"), HasSubstr("warning: ")));
}

TEST_F(SharedOutputTest, APrivateDaemonLetsCompilersShowLines) {
  TestBuilder t(TestBuilder::On::kInlineExecutor);
  RecordingObserver observer;
  const absl::Status status = t.Load(With("int x = y;\n"), observer).status();
  EXPECT_THAT(GetErrorDetail(status).compiler_output(), HasSubstr("    8 | int x = y;\n"));
  EXPECT_THAT(observer.output, AllOf(HasSubstr("int x = y;"), Not(HasSubstr("caret"))));
}

TEST(AssemblerMayReadTest, KnowsTheWords) {
  EXPECT_TRUE(AssemblerMayRead("\t.include \"x\"\n"));
  EXPECT_TRUE(AssemblerMayRead("a;.IncBin \"x\""));
  EXPECT_TRUE(AssemblerMayRead("\t.macro m\n"));
  EXPECT_TRUE(AssemblerMayRead("\t.rept 2\n"));
  EXPECT_TRUE(AssemblerMayRead("\t.irpc c,ab\n"));
  EXPECT_FALSE(AssemblerMayRead(
      "\t.file \"unit.cc\"\n\t.text\n#APP\n# 9 \"kernel.cc\" 1\n\tnop\n#NO_APP\n\t.ident \"GCC: 12\"\n"));
}

}  // namespace
}  // namespace kernix::build
