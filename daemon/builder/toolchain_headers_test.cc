// SPDX-License-Identifier: Apache-2.0
//
// Files outside the request that compilers and assemblers read: each hit looks at them again.
#include "daemon/builder/toolchain_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "tests/support/fault_env.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using toolchain::FlagPolicy;

constexpr TestBuilder::On kInline = TestBuilder::On::kInlineExecutor;

class FilesReadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
  }

  static v1::LoadRequest Add(v1::LoadRequest request, const std::string& text,
                             const std::vector<std::string>& flags = {}) {
    request.mutable_source(0)->mutable_text()->append(text);
    for (const std::string& flag : flags) request.mutable_options()->add_compile_flags(flag);
    return request;
  }
  v1::LoadRequest With(const std::string& text, const std::vector<std::string>& flags = {}) const {
    return Add(CppRequest(compiler_), text, flags);
  }

  // Long enough before the next build that the file's time shows that.
  void Write(const std::string& text) {
    ASSERT_THAT(Env::Posix().WriteFile(file_, text, 0644), IsOk());
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
  }

  // `text` has the assembler read the file, by words that only the assembler puts together.
  std::string Incbin() const {
    return StrCat("asm(\".section .rodata\\n.in\" \"cbin \\\"", file_, "\\\"\\n.text\\n\");\n");
  }

  static void ExpectHit(TestBuilder& t, const v1::LoadRequest& request, bool hit) {
    const auto result = t.Load(request);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->cache_hit(), hit);
  }

  // Builds `request` with `first` in the file and in the artifact, takes that from the store, and builds it again when
  // the file has `second`.
  void ExpectLookedAt(TestBuilder& t, const v1::LoadRequest& request, const std::string& first,
                      const std::string& second) {
    Write(first);
    const auto built = t.Load(request);
    ASSERT_THAT(built, IsOk());
    EXPECT_FALSE(built->cache_hit());
    ExpectHit(t, request, true);
    Write(second);
    const auto again = t.Load(request);
    ASSERT_THAT(again, IsOk());
    EXPECT_FALSE(again->cache_hit());
    EXPECT_NE(again->artifact_digest(), built->artifact_digest());
    ExpectHit(t, request, true);
  }
  void ExpectDataLookedAt(TestBuilder& t, const v1::LoadRequest& request) {
    ExpectLookedAt(t, request, "marrowbone", "a longer marrowbone");
    const auto known = t.Load(request);
    ASSERT_THAT(known, IsOk());
    EXPECT_THAT(t.Artifact(*known), HasSubstr("a longer marrowbone"));
  }

  const ScratchDirectory folder_;
  const std::string file_ = folder_ / "mine";
  std::string compiler_;
};

TEST_F(FilesReadTest, WhatTheAssemblerReadsIsLookedAtForEveryHit) {
  TestBuilder t(kInline);
  for (const char* flag : {"-O2", "-g"}) ExpectDataLookedAt(t, With(Incbin(), {flag}));
}

TEST_F(FilesReadTest, WhatTheAssemblerReadsIsKnownWithLinkTimeOptimisation) {
  TestBuilder t(kInline);
  Write("bone");
  const v1::LoadRequest request = With(Incbin(), {"-flto"});
  ExpectHit(t, request, false);
  ExpectHit(t, request, true);
  Write("marrowbone");
  ExpectHit(t, request, false);
}

TEST_F(FilesReadTest, WhatClangsAssemblerReadsIsLookedAtForEveryHit) {
  KERNIX_NEED_PROGRAM(clang, "clang++");
  compiler_ = clang;
  TestBuilder t(kInline);
  ExpectDataLookedAt(t, With(Incbin()));
}

TEST_F(FilesReadTest, WhatAFailedBuildHasReadMayBeMended) {
  TestBuilder t(kInline);
  const v1::LoadRequest request = With(Incbin());
  EXPECT_THAT(ToStd(t.Load(request).status().message()), HasSubstr("file not found: " + file_));
  ExpectDataLookedAt(t, request);
}

TEST_F(FilesReadTest, AHeaderOfAnyNameIsLookedAtForEveryHit) {
  const std::string first = "inline float Step() { return 1; }\n";
  const std::string second = "inline float Step() { return 2; }\nint more;\n";
  TestBuilder t(kInline);
  for (const std::string& text :
       {StrCat("#include \"", file_, "\"\n"), StrCat("#define HERE <", file_, ">\n#include HERE\n"),
        StrCat("#define Q(x) #x\n#define S(x) Q(x)\n#include S(", file_, ")\n")}) {
    ExpectLookedAt(t, With(text), first, second);
  }
}

TEST_F(FilesReadTest, TheToolchainsOwnHeadersMayBeNamedByPath) {
  for (const FlagPolicy policy : {FlagPolicy::kPerUser, FlagPolicy::kShared}) {
    TestBuilder t(kInline, {.flag_policy = policy});
    const v1::LoadRequest request = With(
        "#if !__has_include(\"/usr/include/stdlib.h\")\n#error no\n#endif\n#include \"/usr/include/stdlib.h\"\n"
        "#include \"/usr/include/../include/locale.h\"\n#include <vector>\n"
        "asm(\".section .rodata\\n.incbin \\\"/usr/bin/env\\\"\\n.text\");\n");
    ExpectHit(t, request, false);
    ExpectHit(t, request, true);
  }
}

// The assembler lists what `.file` names, without reading it.
TEST_F(FilesReadTest, ASharedDaemonTrustsNoNameOutsideTheToolchain) {
  Write("int more;\n");
  const v1::LoadRequest request = With(StrCat("asm(\".file \\\"", file_, "\\\"\");\n"));
  TestBuilder mine(kInline);
  ExpectHit(mine, request, false);
  ExpectHit(mine, request, true);
  TestBuilder shared(kInline, {.flag_policy = FlagPolicy::kShared});
  ExpectHit(shared, request, false);
  ExpectHit(shared, request, false);
}

// Whatever a name says about a file outside the toolchain, nobody asks whether it is there.
TEST(ToolchainHeadersTest, OnlyTheToolchainIsLookedAt) {
  const ScratchDirectory folder;
  FaultEnv env(Env::Posix());
  toolchain::FileDigests digests(env);
  toolchain::Toolchain toolchain;
  toolchain.host.system_include_directories = {folder / "include"};
  for (const char* name : {"include/a.h", "secret/a.h"}) {
    ASSERT_THAT(env.CreateDirectories(Dirname(folder / name), 0700), IsOk());
    ASSERT_THAT(env.WriteFile(folder / name, "int a;\n", 0600), IsOk());
  }
  bool asked = false;
  for (const Operation operation :
       {Operation::kStat, Operation::kReadFile, Operation::kOpenFile, Operation::kRealPath, Operation::kReadLink}) {
    env.Inject({.operation = operation, .match = "secret", .times = 0, .before = [&] { asked = true; }});
  }
  const BuildStart start{env.Now(), env.UnixMillis() + 10'000};
  const auto record = [&](const std::vector<std::string>& lists, LookAt look_at) {
    return DigestToolchainHeaders(env, digests, toolchain, lists, start, look_at);
  };
  const std::string known = folder / "include/../include/a.h";
  const std::vector<std::string> listed = {StrCat("u.o: ", known, " ", folder / "secret/a.h", " ../secret/a.h"),
                                           StrCat("u.o: ", folder / "include/../secret/a.h", " ",
                                                  folder / "secret/../include/a.h", " ", folder / "secret/none.h")};
  const HeadersRead shared = record(listed, LookAt::kToolchain);
  EXPECT_FALSE(asked);
  EXPECT_FALSE(shared.states.has_value());
  ASSERT_EQ(shared.headers.size(), 2u) << "one stands for all that are not looked at";
  EXPECT_EQ(shared.headers[0].digest, Digest());
  EXPECT_EQ(shared.headers[1], (StatedHeader{"kernix-host-0/a.h", DigestOf("int a;\n")}));
  std::vector<WatchedFile> states;
  EXPECT_TRUE(ChangedToolchainHeader(digests, toolchain, shared.headers, states).has_value());
  EXPECT_FALSE(asked);

  EXPECT_TRUE(record({StrCat("u.o: ", known)}, LookAt::kToolchain).states.has_value());
  const HeadersRead all = record({StrCat("u.o: ", folder / "secret/a.h")}, LookAt::kAll);
  EXPECT_TRUE(asked && all.states.has_value());
}

TEST(ToolchainHeadersTest, FilesThatAreNotLookedAtDoNotFillTheLog) {
  toolchain::FileDigests digests(Env::Posix());
  const std::vector<std::string> listed = {StrCat("u.o: /", std::string(4000, 'x'))};
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 200; ++i) {
    DigestToolchainHeaders(Env::Posix(), digests, toolchain::Toolchain(), listed, BuildStart(), LookAt::kToolchain);
  }
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr("header_not_recorded"));
  EXPECT_LT(logged.size(), 300'000u);
}

TEST_F(FilesReadTest, AFileThatIsGoneIsNoHit) {
  TestBuilder t(kInline);
  Write("int more;\n");
  const v1::LoadRequest request =
      With(StrCat("#if __has_include(\"", file_, "\")\n#include \"", file_, "\"\n#endif\n"));
  ExpectHit(t, request, false);
  ASSERT_THAT(Env::Posix().RemoveFile(file_), IsOk());
  ExpectHit(t, request, false);
}

// The root that such a path climbs out of is gone after the build.
TEST_F(FilesReadTest, WhatARelativePathNamesOutsideTheRootIsBuiltAnew) {
  TestBuilder t(kInline);
  Write("int more;\n");
  std::string climb;
  for (int i = 0; i < 30; ++i) climb += "../";
  const v1::LoadRequest request = With(StrCat("#include \"", climb, file_.substr(1), "\"\n"));
  ExpectHit(t, request, false);
  ExpectHit(t, request, false);
}

TEST_F(FilesReadTest, WhatLiesBesideAnIncludeRootIsBuiltAnew) {
  TestBuilder t(kInline);
  const std::string tmp = t.cache->scratch_directory();
  ASSERT_THAT(t.env.CreateDirectories(tmp, 0700), IsOk());
  for (const std::string& folder : {tmp, Dirname(tmp), Dirname(Dirname(tmp))}) {
    ASSERT_THAT(t.env.WriteFile(folder + "/beside", "int more;\n", 0600), IsOk());
  }
  std::string climb;
  int found = 0;
  for (int i = 0; i < 6; ++i) {
    climb += "../";
    v1::LoadRequest request = With("#include \"climbs.h\"\n");
    const std::string header = StrCat("#include \"", climb, "beside\"\n");
    AddHeader(request, 0, "climbs.h", header);
    for (int load = 0; load < 2; ++load) {
      RecordingObserver observer({header});
      const auto result = t.Load(request, observer);
      found += result.ok();
      EXPECT_FALSE(result.ok() && result->cache_hit()) << header;
    }
  }
  EXPECT_GT(found, 0);
}

TEST_F(FilesReadTest, QuestionsHaveTheCompilersAnswers) {
  Write("");
  const std::string name = StrCat("\"", file_, "\"");
  TestBuilder t(kInline);
  for (const std::string& question :
       {StrCat("#define NAME ", name, "\n#if !__has_include(NAME)\n#error no\n#endif\n"),
        StrCat("#define HAS(x) __has_include(x)\n#if !HAS(", name, ")\n#error no\n#endif\n"),
        StrCat("#if !__has_\\\ninclude(", name, ")\n#error no\n#endif\n"),
        std::string("#if __has_include(\"../../../x\")\n#error yes\n#endif\n")}) {
    EXPECT_THAT(t.Load(With(question)), IsOk()) << question;
  }
}

TEST_F(FilesReadTest, WhatNvccsToolsReadIsLookedAtForEveryHit) {
  KERNIX_NEED_NVCC(nvcc);
  TestBuilder t(kInline);
  const v1::LoadRequest plain = CudaRequest(compiler_, nvcc);
  ExpectDataLookedAt(t, Add(plain, StrCat("#ifndef __CUDA_ARCH__\n", Incbin(), "#endif\n")));
  ExpectLookedAt(t,
                 Add(plain, StrCat("#define HERE <", file_,
                                   ">\n__global__ void g(int* p) {\n#ifdef __CUDA_ARCH__\n#include HERE\n#endif\n}\n")),
                 "*p = 1;\n", "*p = 2;\n");
}

// Of generated code, for example.
TEST_F(FilesReadTest, WhatALineDirectiveNamesIsNotRead) {
  KERNIX_NEED_NVCC(nvcc);
  TestBuilder t(kInline);
  const v1::LoadRequest request = Add(CudaRequest(compiler_, nvcc), StrCat("#line 1 \"", file_, "\"\nint more;\n"));
  ExpectHit(t, request, false);
  ExpectHit(t, request, true);
}

TEST_F(FilesReadTest, AMissNamesTheFile) {
  TestBuilder t(kInline);
  Write("bone");
  const v1::LoadRequest request = With(Incbin());
  ExpectHit(t, request, false);
  Write("marrowbone");
  const auto again = t.Load(request);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->miss_reason(), StrCat("file ", file_, " changed"));
}

TEST_F(FilesReadTest, AResultNamesTheOtherFiles) {
  TestBuilder t(kInline);
  Write("bone");
  const v1::LoadRequest request = With(StrCat("#include <vector>\n", Incbin()));
  for (const bool hit : {false, true}) {
    const auto result = t.Load(request);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->cache_hit(), hit);
    EXPECT_THAT(result->other_file(), ElementsAre(file_));
  }
  const auto plain = t.Load(With("#include <vector>\n"));
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->other_file_size(), 0);
}

}  // namespace
}  // namespace kernix::build
