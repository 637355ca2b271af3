// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/files_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using toolchain::FlagPolicy;

constexpr TestBuilder::On kInline = TestBuilder::On::kInlineExecutor;

// Reads a file of the machine by words that only the assembler puts together.
constexpr char kHiddenIncbin[] = "asm(\".section .rodata\\n.in\" \"cbin \\\"/etc/passwd\\\"\\n.text\\n\");\n";

class FilesReadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
    WriteHeader("inline float Step() { return 1; }\n");
  }

  v1::LoadRequest RequestWith(const std::string& text) {
    v1::LoadRequest request = CppRequest(compiler_);
    request.mutable_source(0)->mutable_text()->append(text);
    return request;
  }
  void WriteHeader(const std::string& text) { ASSERT_THAT(Env::Posix().WriteFile(header_, text, 0644), IsOk()); }

  const ScratchDirectory folder_;
  const std::string header_ = folder_ / "mine.h";
  std::string compiler_;
};

TEST_F(FilesReadTest, AnAssemblerFileIsRefusedWithTheUsersLine) {
  TestBuilder t(kInline);
  const v1::ErrorDetail detail =
      GetErrorDetail(t.Load(RequestWith("asm(\".section .rodata\\n\"\n    \".incbin '/etc/passwd'\");\n")).status());
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(detail.message(), StartsWith("kernel.cc:9: .incbin in assembler text: "));
}

// Names a file that exists; otherwise the compiler itself would complain.
constexpr char kIncbinHeader[] =
    "#pragma once\n#ifdef WITH_DATA\nasm(\".section .rodata\\n.incbin \\\"/etc/passwd\\\"\\n.text\\n\");\n#endif\n";

TEST_F(FilesReadTest, AHeaderThatHasTheAssemblerReadAFileIsNamedByItsPlace) {
  TestBuilder t(kInline);
  v1::LoadRequest request = RequestWith("#define WITH_DATA\n#include \"data.h\"\n");
  AddHeader(request, 0, "data.h", kIncbinHeader);
  RecordingObserver observer({kIncbinHeader});
  EXPECT_THAT(ToStd(t.Load(request, observer).status().message()), StartsWith("inc/0/data.h:3: .incbin"));
  EXPECT_EQ(t.Stats().entries, 0u);
}

TEST_F(FilesReadTest, WhatIsNotCompiledOfAHeaderIsNoMatterWhereTheAssemblerTells) {
  TestBuilder t(kInline);
  v1::LoadRequest request = RequestWith("#include \"data.h\"\n");
  AddHeader(request, 0, "data.h", kIncbinHeader);
  RecordingObserver observer({kIncbinHeader});
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

TEST_F(FilesReadTest, AHeaderThatIsReadMayAskForNoFile) {
  TestBuilder t(kInline);
  const std::string text = "#pragma once\n#if defined(__has_embed) && 0\n#if __has_embed(\"x\")\n#endif\n#endif\n";
  v1::LoadRequest request = RequestWith("#include \"sub/../asks.h\"\n");
  AddHeader(request, 0, "asks.h", text);
  AddHeader(request, 0, "sub/other.h", "\n");
  RecordingObserver observer({text, "\n"});
  EXPECT_THAT(ToStd(t.Load(request, observer).status().message()), StartsWith("inc/0/asks.h:3: __has_embed"));
}

// A client sends every header that might be included, whatever the conditions around the include.
TEST_F(FilesReadTest, HeadersThatNothingIncludesMaySayAnything) {
  const std::vector<std::string> texts = {"asm(\".incbin 'data'\");\n", "#embed \"data.bin\"\n",
                                          "#if __has_embed(\"data.bin\")\n#endif\n",
                                          "#if __has_include(\"/nowhere/x.h\")\n#endif\n#include \"/nowhere/x.h\"\n"};
  TestBuilder t(kInline, {.flag_policy = FlagPolicy::kShared});
  v1::LoadRequest request = RequestWith("const char* help = \".incbin\";\n");
  for (size_t i = 0; i < texts.size(); ++i) AddHeader(request, 0, StrCat("h", i, ".h"), texts[i]);
  RecordingObserver observer(texts);
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

TEST_F(FilesReadTest, AnAssemblerFileThatMacrosHideIsRefusedAllTheSame) {
  TestBuilder t(kInline);
  for (const char* flag : {"-g", "-flto"}) {
    v1::LoadRequest request = RequestWith(kHiddenIncbin);
    request.mutable_options()->add_compile_flags(flag);
    const v1::ErrorDetail detail = GetErrorDetail(t.Load(request).status());
    EXPECT_EQ(detail.kind(), v1::ErrorDetail::INVALID_REQUEST) << flag;
    EXPECT_THAT(detail.message(), StartsWith("the assembler has read /etc/passwd")) << flag;
  }
  EXPECT_EQ(t.Stats().entries, 0u);
}

// Clang's assembler does not report what it reads, so the flag's text is checked.
TEST_F(FilesReadTest, AMacroOfAFlagNamesNoFileEither) {
  TestBuilder t(kInline);
  v1::LoadRequest request = RequestWith("DATA\n");
  request.mutable_options()->add_compile_flags("-DDATA=__asm__(\".incbin \\\"/etc/passwd\\\"\");");
  const v1::ErrorDetail detail = GetErrorDetail(t.Load(request).status());
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(detail.message(), HasSubstr("<command-line>"));
}

TEST_F(FilesReadTest, APerUserDaemonLooksAtAnAbsoluteHeaderForEveryHit) {
  TestBuilder t(kInline);
  const v1::LoadRequest request = RequestWith(StrCat("#include \"", header_, "\"\n"));
  const auto built = t.Load(request);
  ASSERT_THAT(built, IsOk());
  WriteHeader("inline float Step() { return 2; }\nint more;\n");
  const auto again = t.Load(request);
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->cache_hit());
  EXPECT_NE(again->artifact_digest(), built->artifact_digest());
}

TEST_F(FilesReadTest, ASharedDaemonRefusesAnAbsoluteHeaderByLine) {
  TestBuilder t(kInline, {.flag_policy = FlagPolicy::kShared});
  const auto result = t.Load(RequestWith(StrCat("#include \"", header_, "\"\n")));
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(ToStd(result.status().message()),
              AllOf(StartsWith(StrCat("kernel.cc:8: #include ", header_)), HasSubstr("extra_include_paths")));
}

TEST_F(FilesReadTest, ASharedDaemonSeesThroughMacros) {
  TestBuilder t(kInline, {.flag_policy = FlagPolicy::kShared});
  const auto result = t.Load(RequestWith(StrCat("#define HERE <", header_, ">\n#include HERE\n")));
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(ToStd(result.status().message()), StartsWith(StrCat("the compiler was told to read ", header_)));
  EXPECT_EQ(t.Stats().entries, 0u);
}

TEST_F(FilesReadTest, APathThatClimbsOutOfTheInputRootIsRefused) {
  TestBuilder t(kInline);
  std::string climb;
  for (int i = 0; i < 30; ++i) climb += "../";
  const auto result = t.Load(RequestWith(StrCat("#include \"", climb, header_.substr(1), "\"\n")));
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_EQ(t.Stats().entries, 0u);
}

// No source may read the place of an include root on disk, or its neighbours. The files are valid headers, so that it
// is not the compiler that refuses them.
class ClimbingTest : public FilesReadTest {
 protected:
  void SetUp() override {
    FilesReadTest::SetUp();
    const std::string tmp = t_.cache->scratch_directory();
    for (const std::string& folder : {tmp, Dirname(tmp), Dirname(Dirname(tmp))}) {
      ASSERT_THAT(t_.env.CreateDirectories(folder, 0700), IsOk());
      ASSERT_THAT(t_.env.WriteFile(folder + "/beside", "static const char* kSecret = \"words\";\n", 0600), IsOk());
    }
  }

  void ExpectRefused(const std::string& header) {
    v1::LoadRequest request = RequestWith("#include \"climbs.h\"\n");
    AddHeader(request, 0, "climbs.h", header);
    RecordingObserver observer({header});
    const absl::Status status = t_.Load(request, observer).status();
    EXPECT_THAT(KindOf(status), AnyOf(v1::ErrorDetail::INVALID_REQUEST, v1::ErrorDetail::COMPILATION)) << header;
    EXPECT_THAT(GetErrorDetail(status).compiler_output(), Not(HasSubstr("words")));
    EXPECT_EQ(t_.Stats().entries, 0u) << header;
  }

  TestBuilder t_{kInline, {.flag_policy = FlagPolicy::kShared}};
};

TEST_F(ClimbingTest, ByTheAssemblerIsRefused) {
  std::string climb;
  for (int i = 0; i < 6; ++i) {
    climb += "../";
    for (const char* from : {"inc/0/", "inc/../inc//0/./", "kernix/../inc/0/"}) {
      ExpectRefused(StrCat("asm(\".section .rodata\\n.in\" \"cbin \\\"", from, climb, "beside\\\"\\n.text\\n\");\n"));
    }
  }
  ExpectRefused(StrCat("asm(\".section .rodata\\n.in\" \"cbin \\\"", Dirname(t_.cache->scratch_directory()),
                       "/beside\\\"\\n.text\\n\");\n"));
}

TEST_F(ClimbingTest, ByAnIncludeIsRefused) {
  std::string climb;
  for (int i = 0; i < 6; ++i) {
    climb += "../";
    ExpectRefused(StrCat("#include \"", climb, "beside\"\n"));
    ExpectRefused(StrCat("#define WHERE <", climb, "beside>\n#include WHERE\n"));
  }
  ExpectRefused(StrCat("#define WHERE <", Dirname(t_.cache->scratch_directory()), "/beside>\n#include WHERE\n"));
}

// The tree's own files under a name that the request does not have: the checks of headers would not apply to them.
TEST_F(ClimbingTest, OutOfAnIncludeRootAndBackIsRefused) {
  ExpectRefused("#ifndef ONCE\n#define ONCE\n#include \"../tree/climbs.h\"\n#endif\n");
  ExpectRefused("#ifndef ONCE\n#define ONCE\n#include \"../../tree/tree/climbs.h\"\n#endif\n");
  ExpectRefused("#include \"../tree/brainevent/span.h\"\n");  // out of our own headers
  ExpectRefused("asm(\".section .rodata\\n.in\" \"cbin \\\"inc/0/../tree/climbs.h\\\"\\n.text\\n\");\n");
}

TEST_F(FilesReadTest, TheToolchainsOwnHeadersMayBeNamedByPath) {
  TestBuilder t(kInline, {.flag_policy = FlagPolicy::kShared});
  EXPECT_THAT(t.Load(RequestWith("#if __has_include(\"/usr/include/stdlib.h\")\n#include "
                                 "\"/usr/include/stdlib.h\"\n#include <vector>\n#endif\n")),
              IsOk());
}

TEST_F(FilesReadTest, ClangTellsOfHeadersToo) {
  KERNIX_NEED_PROGRAM(clang, "clang++");
  TestBuilder t(kInline, {.flag_policy = FlagPolicy::kShared});
  compiler_ = clang;
  EXPECT_THAT(t.Load(RequestWith("#include <vector>\n")), IsOk());
  const auto result = t.Load(RequestWith(StrCat("#define HERE <", header_, ">\n#include HERE\n")));
  EXPECT_THAT(ToStd(result.status().message()), StartsWith(StrCat("the compiler was told to read ", header_)));

  // Clang's own assembler, which a private daemon allows, does not report: every header that was read is checked.
  TestBuilder own(kInline);
  v1::LoadRequest request = RequestWith("#include \"data.h\"\n");
  AddHeader(request, 0, "data.h", kIncbinHeader);
  RecordingObserver observer({kIncbinHeader});
  EXPECT_THAT(ToStd(own.Load(request, observer).status().message()), StartsWith("inc/0/data.h:3: .incbin"));
}

TEST_F(FilesReadTest, NvccTellsOfEveryPass) {
  KERNIX_NEED_NVCC(nvcc);
  TestBuilder t(kInline, {.flag_policy = FlagPolicy::kShared});
  const auto with = [&](const std::string& text) {
    v1::LoadRequest request = CudaRequest(compiler_, nvcc);
    request.mutable_source(0)->mutable_text()->append(text);
    return request;
  };
  const auto device =
      t.Load(with(StrCat("#define HERE <", header_, ">\n#ifdef __CUDA_ARCH__\n#include HERE\n#endif\n")));
  EXPECT_THAT(ToStd(device.status().message()), StartsWith(StrCat("the compiler was told to read ", header_)));
  const auto host = t.Load(with(StrCat("#ifndef __CUDA_ARCH__\n", kHiddenIncbin, "#endif\n")));
  EXPECT_THAT(ToStd(host.status().message()), StartsWith("the assembler text of the sources has directives"));
  v1::LoadRequest in_header = with("#ifndef __CUDA_ARCH__\n#define WITH_DATA\n#endif\n#include \"data.h\"\n");
  AddHeader(in_header, 0, "data.h", kIncbinHeader);
  RecordingObserver observer({kIncbinHeader});
  EXPECT_THAT(ToStd(t.Load(in_header, observer).status().message()), StartsWith("inc/0/data.h:3: .incbin"));
  EXPECT_THAT(t.Load(CudaRequest(compiler_, nvcc)), IsOk());
}

// Sources must not ask which files exist, and no key covers the answer.
TEST_F(FilesReadTest, QuestionsWithAnAnswerThatNoKeyCoversAreRefused) {
  const std::string name = StrCat("\"", header_, "\"");
  for (const FlagPolicy policy : {FlagPolicy::kPerUser, FlagPolicy::kShared}) {
    TestBuilder t(kInline, {.flag_policy = policy});
    for (const std::string& question :
         {StrCat("#define NAME ", name, "\n#if __has_include(NAME)\n#endif\n"),
          StrCat("#define HAS(x) __has_include(x)\n#if HAS(", name, ")\n#endif\n"),
          StrCat("#if __has_\\\ninclude(", name, ")\n#endif\n"),
          std::string("#if __has_include(\"../../../x\")\n#endif\n"),
          std::string("#if __has_include(<../x>)\n#endif\n"), std::string("#if __has_include(__FILE__)\n#endif\n")}) {
      const absl::Status status = t.Load(RequestWith(question)).status();
      EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST) << question;
      EXPECT_THAT(ToStd(status.message()), AllOf(StartsWith("kernel.cc:"), HasSubstr(": __has_include"))) << question;
    }
    EXPECT_EQ(t.Stats().entries, 0u);
  }
}

TEST_F(FilesReadTest, QuestionsOfHeadersCountLikeTheSources) {
  const std::string has = "#define HAS(x) __has_include(x)\n";
  const std::string asks = StrCat("#include \"has.h\"\n#if HAS(\"", header_, "\")\n#endif\n");
  for (const FlagPolicy policy : {FlagPolicy::kPerUser, FlagPolicy::kShared}) {
    TestBuilder t(kInline, {.flag_policy = policy});
    v1::LoadRequest request = RequestWith("#include \"asks.h\"\n");
    AddHeader(request, 0, "asks.h", asks);
    AddHeader(request, 0, "has.h", has);
    RecordingObserver observer({asks, has});
    EXPECT_THAT(ToStd(t.Load(request, observer).status().message()), StartsWith("inc/0/asks.h:2: __has_include /"));
    EXPECT_EQ(t.Stats().entries, 0u);
  }
}

// The forms that libraries use.
TEST_F(FilesReadTest, QuestionsForPlainNamesLoad) {
  TestBuilder t(kInline, {.flag_policy = FlagPolicy::kShared});
  const std::string has =
      "#pragma once\n#ifdef __has_include\n#  define FMT_HAS_INCLUDE(x) __has_include(x)\n#else\n#  define "
      "FMT_HAS_INCLUDE(x) 0\n#endif\n#define _CCCL_HAS_INCLUDE(_X) __has_include(_X)\n";
  const std::string asks =
      "#include \"../has.h\"\n#if FMT_HAS_INCLUDE(<string_view>) && _CCCL_HAS_INCLUDE(\"../has.h\")\n#if "
      "!__has_include(<nowhere.h>)\n#define ANSWERED\n#endif\n#endif\n";
  v1::LoadRequest request = RequestWith(
      "#if defined(__has_include) && __has_include(\"sub/asks.h\")\n#include \"sub/asks.h\"\n#endif\n#ifndef "
      "ANSWERED\n#error no answer\n#endif\n");
  AddHeader(request, 0, "sub/asks.h", asks);
  AddHeader(request, 0, "has.h", has);
  RecordingObserver observer({asks, has});
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

}  // namespace
}  // namespace kernix::build
