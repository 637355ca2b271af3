// SPDX-License-Identifier: Apache-2.0
//
// Flags on real compilers: -D has its meaning, and no shell interprets a user's text or a folder's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "tests/support/inline_executor.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

constexpr auto kInline = TestBuilder::On::kInlineExecutor;

const std::vector<std::string> kMacros = {"-D_GLIBCXX_USE_CXX11_ABI=0",
                                          "-DNAME=\"a b\"",
                                          "-DX=(1<<3)",
                                          "-DF(x)=x",
                                          "-DONE",
                                          "-D",
                                          "EMPTY=",
                                          "-DGONE",
                                          "-UGONE"};

constexpr char kAsserts[] =
    "#include <string>\n"
    "static_assert(X == 8 && F(7) == 7 && ONE == 1 && sizeof(NAME) == 4 && NAME[1] == ' ', \"\");\n"
    "static_assert(EMPTY true, \"\");\n"
    "#if defined(GONE) || _GLIBCXX_USE_CXX11_ABI != 0\n"
    "#error macros\n"
    "#endif\n"
    "#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_USE_DUAL_ABI\n"
    "static_assert(sizeof(std::string) == sizeof(char*), \"the older std::string\");\n"
    "#endif\n";

void AddFlags(v1::LoadRequest& request, const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) request.mutable_options()->add_compile_flags(flag);
}

void Prepend(v1::Source& source, const std::string& text) { source.mutable_text()->insert(0, text); }

bool IsThere(const std::string& path) { return Env::Posix().Stat(path, /*follow=*/false).ok(); }

TEST(MacrosTest, OfACppLoadMeanWhatTheyMeanToTheCompiler) {
  for (const char* program : {"g++", "clang++"}) {
    KERNIX_NEED_PROGRAM(compiler, program);
    TestBuilder t(kInline);
    v1::LoadRequest request = CppRequest(compiler);
    Prepend(*request.mutable_source(0), kAsserts);
    AddFlags(request, kMacros);
    EXPECT_THAT(t.Load(request), IsOk()) << program;
  }
}

TEST(MacrosTest, ErrorsStillNameTheUsersLine) {
  KERNIX_NEED_PROGRAM(compiler, "g++");
  TestBuilder t(kInline);
  v1::LoadRequest request = CppRequest(compiler);
  request.mutable_source(0)->mutable_text()->append("int two = TWO;\n");
  AddFlags(request, {"-DONE", "-DTWO=nonsense"});
  const v1::ErrorDetail detail = GetErrorDetail(t.Load(request).status());
  EXPECT_THAT(detail.message(), HasSubstr("<command-line>:2"));
  EXPECT_THAT(detail.compiler_output(), HasSubstr("kernel.cc:8:11: note: in expansion of macro"));
}

class CudaFlagsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    KERNIX_NEED_NVCC(nvcc);
    request_ = CudaRequest(compiler, nvcc);
  }

  v1::LoadRequest request_;
};

// In the host and device passes, in the PTX that is kept, and in a C++ unit beside them; before cuda_runtime.h.
TEST_F(CudaFlagsTest, MacrosAreTheSameInEveryPassAndUnit) {
  request_.mutable_options()->set_separate_units(true);
  request_.mutable_options()->set_keep(true);
  Prepend(*request_.mutable_source(0), std::string(kAsserts) +
                                           "#ifndef __CUDART_API_PER_THREAD_DEFAULT_STREAM\n#error stream\n#endif\n"
                                           "__global__ void marked(int* o) { o[0] = X + 424242; }\n");
  v1::Source* cpp = request_.add_source();
  cpp->set_label("other.cpp");
  cpp->set_language(v1::LANGUAGE_CPP);
  cpp->set_text(StrCat(kAsserts, "int other() { return X; }\n"));
  AddFlags(request_, kMacros);
  AddFlags(request_, {"-DCUDA_API_PER_THREAD_DEFAULT_STREAM"});
  TestBuilder t(kInline);
  const auto result = t.Load(request_);
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(t.Artifact(*result), HasSubstr("424250")) << "in the PTX";
}

TEST_F(CudaFlagsTest, AMacroOfAKernelIsNoCommand) {
  TestBuilder t(kInline);
  const std::string mark = t.folder / "was-run";
  const std::string command = StrCat("touch${IFS}", mark);
  AddFlags(request_, {StrCat("-DA=$(", command, ")"), StrCat("-DB=`touch ", mark, "`"), StrCat("-DC=1;", command),
                      "-Xcompiler", StrCat("-DD=$(", command, ")")});
  EXPECT_THAT(t.Load(request_), IsOk());
  EXPECT_FALSE(IsThere(mark));
}

TEST_F(CudaFlagsTest, WhatAShellOrAToolWouldReadIsRefused) {
  TestBuilder t(kInline);
  const std::string mark = t.folder / "was-run";
  const std::string command = StrCat("touch${IFS}", mark);
  const std::vector<std::vector<std::string>> attacks = {
      {StrCat("-U$(", command, ")")},
      {StrCat("-UX;", command)},
      {StrCat("-Xptxas=-v;", command)},
      {"-Xptxas", "-v;touch x"},
      {"-Xcompiler", StrCat("-fmessage-length=$(", command, ")")},
      {StrCat("-frandom-seed=$(", command, ")")},
      {"-Xcompiler", "--param", "-Xcompiler", "@/etc/hostname"},
      {"-D", "@inc/0/args.h"},
      {"-Xcompiler", "-D,@inc/0/args.h"},
  };
  for (const std::vector<std::string>& flags : attacks) {
    v1::LoadRequest request = request_;
    AddFlags(request, flags);
    EXPECT_EQ(KindOf(t.Load(request).status()), v1::ErrorDetail::INVALID_REQUEST) << flags.back();
  }
  EXPECT_FALSE(IsThere(mark));
  EXPECT_EQ(t.Stats().entries(), 0u);
}

// g++ took "-D" "@file" for the flags in that file, and an uploaded header can be such a file.
TEST(AtFileTest, NoCompilerReadsFlagsFromAFile) {
  KERNIX_NEED_PROGRAM(compiler, "g++");
  TestBuilder t(kInline);
  const std::string text = "-fplugin=inc/0/plugin.so\n";
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"-D", "@inc/0/args.h"},
                                                {"-U", "@inc/0/args.h"},
                                                {"--param", "@/etc/hostname"},
                                                {"--param=@inc/0/args.h"},
                                                {"@inc/0/args.h"}}) {
    v1::LoadRequest request = CppRequest(compiler);
    AddHeader(request, 0, "args.h", text);
    AddFlags(request, flags);
    RecordingObserver observer({text});
    const v1::ErrorDetail detail = GetErrorDetail(t.Load(request, observer).status());
    EXPECT_EQ(detail.kind(), v1::ErrorDetail::INVALID_REQUEST) << flags.back();
    EXPECT_EQ(detail.compiler_output(), "") << flags.back();
  }
}

// A toolkit and a compiler whose paths are shell commands, and a store whose path has blanks, give the same artifact.
TEST_F(CudaFlagsTest, OddFoldersOfTheToolchainAndTheStoreAreNoCommands) {
  namespace fs = std::filesystem;
  TestBuilder usual(kInline), t(kInline);
  const std::string odd = t.folder / "it's (a) $(touch was-run) `touch was-run`;b";
  const std::string root = Dirname(Dirname(request_.toolchain().nvcc()));
  std::error_code error;
  fs::create_directories(odd + "/bin", error);
  // Not by hard links: they would change the identities by which other tests know the toolkit's files.
  fs::copy(fs::canonical(root), odd + "/cuda", fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
  ASSERT_FALSE(error) << error.message();
  fs::create_symlink(request_.toolchain().host_compiler(), odd + "/bin/g++", error);
  const std::string scratch = t.folder / "it's a (store);";
  fs::create_directories(scratch, error);
  t.RunOn(exec::MakeInlineExecutor(t.env, {scratch}));

  request_.mutable_options()->add_architectures("sm_80");
  for (const bool whole_call : {false, true}) {  // of nvcc, or its phases
    request_.set_force_rebuild(whole_call);
    const auto plain = usual.Load(request_);
    ASSERT_THAT(plain, IsOk());
    v1::LoadRequest request = request_;
    request.mutable_toolchain()->set_nvcc(odd + "/cuda/bin/nvcc");
    request.mutable_toolchain()->set_host_compiler(odd + "/bin/g++");
    AddFlags(request, {"-t=2"});
    const auto built = t.Load(request);
    ASSERT_THAT(built, IsOk());
    EXPECT_FALSE(built->cache_hit());
    EXPECT_EQ(built->key(), plain->key());
    EXPECT_EQ(built->artifact_digest(), plain->artifact_digest());
  }
  for (const auto& entry : fs::recursive_directory_iterator(t.folder.path())) {
    EXPECT_NE(entry.path().filename(), "was-run") << entry.path();
  }
}

}  // namespace
}  // namespace kernix::build
