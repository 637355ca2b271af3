// SPDX-License-Identifier: Apache-2.0
//
// Whole loads whose steps run on the workers of a real engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "daemon/remote/remote_executor.h"
#include "daemon/remote/upstream.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/find_tools.h"
#include "tests/support/test_util.h"
#include "tests/support/testing_load.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The bytes of an artifact.
std::string Build(TestBuilder& t, const v1::LoadRequest& request, std::vector<std::string> headers = {}) {
  RecordingObserver observer(std::move(headers));
  const auto result = t.Load(request, observer);
  EXPECT_THAT(result, IsOk());
  return result.ok() ? t.Artifact(*result) : "";
}

// Two workers with a store each: one runs its steps here, one on the engine.
class RemoteBuildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
    KERNIX_NEED_SANDBOX();
  }

  // `folders`: more tools in the sandbox. `options`: of the executor.
  void StartEngine(std::vector<std::string> folders = {}, remote::RemoteExecutorOptions options = {}) {
    engine_ = testing::CasdProcess::Executing(std::move(folders));
    auto upstream = remote::Upstream::Open(Env::Posix(), {.address = engine_->address()});
    ASSERT_THAT(upstream, IsOk());
    upstream_ = *std::move(upstream);
    numbers_.emplace(*upstream_);
    there_->RunOn(remote::MakeRemoteExecutor(Env::Posix(), *upstream_, std::move(options)));
  }
  void TearDown() override { there_.reset(); }

  // A host without compilers: what it has is the description of this machine's, and the engine. Not to outlive it.
  std::unique_ptr<TestBuilder> BareHost(const v1::LoadRequest& request, BuilderOptions options = {}) {
    options.builds_described = true;
    auto bare = std::make_unique<TestBuilder>(TestBuilder::On::kLocalExecutor, std::move(options),
                                              TestBuilder::Tools::kKnown, TestBuilder::Lessons::kAll);
    bare->DescribeTools(request);
    bare->RunOn(remote::MakeRemoteExecutor(Env::Posix(), *upstream_, {}));
    return bare;
  }

  // How many commands the engine has run.
  int64_t Commands() const { return numbers_->Calls("execute", "done"); }

  std::string compiler_;
  std::unique_ptr<testing::CasdProcess> engine_;
  std::unique_ptr<remote::Upstream> upstream_;
  std::optional<remote::UpstreamNumbers> numbers_;
  TestBuilder here_{TestBuilder::On::kLocalExecutor};
  std::unique_ptr<TestBuilder> there_ = std::make_unique<TestBuilder>(TestBuilder::On::kLocalExecutor);
};

TEST_F(RemoteBuildTest, ACppLoadGivesTheArtifactThatThisMachineGives) {
  StartEngine();
  v1::LoadRequest request = CppRequest(compiler_);
  const std::string header = "inline float more() { return 2; }\n";
  AddHeader(request, 0, "more/more.h", header);
  request.mutable_source(0)->mutable_text()->insert(0, "#include <more/more.h>\nfloat used() { return more(); }\n");
  const std::string here = Build(here_, request, {header});
  ASSERT_FALSE(here.empty());
  EXPECT_TRUE(Build(*there_, request, {header}) == here);
  EXPECT_GE(Commands(), 2) << "a compile and a link";
}

TEST_F(RemoteBuildTest, ACompileThatFailsSaysWhatItSaysHere) {
  StartEngine();
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->append("int g() { return nothing; }\n");
  const v1::ErrorDetail here = GetErrorDetail(here_.Load(request).status());
  const v1::ErrorDetail there = GetErrorDetail(there_->Load(request).status());
  EXPECT_EQ(there.kind(), v1::ErrorDetail::COMPILATION) << there.message();
  EXPECT_THAT(there.compiler_output(), HasSubstr("'nothing' was not declared"));
  EXPECT_EQ(there.compiler_output(), here.compiler_output());
}

TEST_F(RemoteBuildTest, ACudaLoadGivesTheArtifactThatThisMachineGives) {
  KERNIX_NEED_NVCC(nvcc);
  const v1::LoadRequest request = CudaRequest(compiler_, nvcc);
  const auto toolchain = KnownToolchains().Resolve(request.toolchain(), v1::LANGUAGE_CUDA);
  ASSERT_THAT(toolchain, IsOk());
  StartEngine({(*toolchain)->cuda->root});
  const std::string here = Build(here_, request);
  ASSERT_FALSE(here.empty());
  EXPECT_TRUE(Build(*there_, request) == here);
  EXPECT_GT(Commands(), 2) << "phases of nvcc, and a link";
}

TEST_F(RemoteBuildTest, NvccTravelsWithTheAction) {
  KERNIX_NEED_NVCC(nvcc);
  const v1::LoadRequest request = CudaRequest(compiler_, nvcc);
  const auto toolchain = KnownToolchains().Resolve(request.toolchain(), v1::LANGUAGE_CUDA);
  ASSERT_THAT(toolchain, IsOk());
  const std::string root = (*toolchain)->cuda->root;
  if (root.starts_with("/usr")) GTEST_SKIP() << "the sandbox has the nvcc in " << root;
  StartEngine({}, {.shipped_folders = {root}});
  const std::string here = Build(here_, request);
  ASSERT_FALSE(here.empty());
  EXPECT_TRUE(Build(*there_, request) == here);
  const int64_t sent = (*numbers_)["kernix_upstream_bytes_total{direction=\"sent\"}"];
  v1::LoadRequest another = request;
  another.mutable_source(0)->mutable_text()->append("// one more\n__global__ void g() {}\n");
  EXPECT_FALSE(Build(*there_, another).empty());
  EXPECT_LT((*numbers_)["kernix_upstream_bytes_total{direction=\"sent\"}"], sent + (20 << 20)) << "nvcc was sent again";
}

// The names that a library imports, each with its version, and what it exports.
struct Names {
  std::vector<std::string> libraries;
  std::vector<ElfImage::Import> imports;

  bool operator==(const Names&) const = default;
};

Names NamesOf(const std::string& artifact) {
  const auto image = ElfImage::Parse(artifact);
  EXPECT_THAT(image, IsOk());
  Names names{image->NeededLibraries().value(), image->Imports().value()};
  std::sort(names.imports.begin(), names.imports.end());
  return names;
}

TEST_F(RemoteBuildTest, AHostWithoutCompilersBuildsWhatOthersTakeForTheirOwn) {
  StartEngine();
  const std::string header = "inline float more() { return 2; }\n";
  v1::LoadRequest request = CppRequest(compiler_);
  AddHeader(request, 0, "more/more.h", header);
  request.mutable_source(0)->mutable_text()->insert(
      0, "#include <locale.h>\n#include <string>\n#include <more/more.h>\nfloat used() { return more(); }\n");
  const auto bare = BareHost(request);
  bare->env.PretendChanged("/usr/include/locale.h");
  RecordingObserver here_headers({header}), bare_headers({header});
  const auto here = here_.Load(request, here_headers);
  request.clear_toolchain();
  const auto built = bare->Load(request, bare_headers);
  ASSERT_THAT(here, IsOk());
  ASSERT_THAT(built, IsOk());
  EXPECT_EQ(built->key(), here->key());
  EXPECT_FALSE(built->cache_hit());
  EXPECT_EQ(Commands(), 2) << "a compile and a link";
  EXPECT_TRUE(NamesOf(bare->Artifact(*built)) == NamesOf(here_.Artifact(*here)));
  bare->AwaitEndOfLearning();
  EXPECT_EQ(Commands(), 2) << "nothing was learned";
  EXPECT_EQ(Counted(*bare, "kernix_plain_links_total{how=\"whole\"}"), 1);

  EXPECT_TRUE(bare->Load(request, bare_headers)->cache_hit()) << "this host's headers are not those of the workers";
  request.set_force_rebuild(true);
  EXPECT_THAT(bare->Load(request, bare_headers), IsOk());
  EXPECT_EQ(Commands(), 4);
  request.set_force_rebuild(false);
  request.set_only_cached(true);
  request.mutable_source(0)->mutable_text()->append("// another\n");
  EXPECT_THAT(bare->Load(request).status().message(), HasSubstr("the policy \"cached\" compiles nothing"));
}

TEST_F(RemoteBuildTest, AHostWithoutCompilersBuildsCuda) {
  KERNIX_NEED_NVCC(nvcc);
  v1::LoadRequest request = CudaRequest(compiler_, nvcc);
  const auto toolchain = KnownToolchains().Resolve(request.toolchain(), v1::LANGUAGE_CUDA);
  ASSERT_THAT(toolchain, IsOk());
  StartEngine({(*toolchain)->cuda->root});
  const auto bare = BareHost(request);
  const auto here = here_.Load(request);
  request.clear_toolchain();
  const auto built = bare->Load(request);
  ASSERT_THAT(here, IsOk());
  ASSERT_THAT(built, IsOk());
  EXPECT_EQ(built->key(), here->key());
  EXPECT_TRUE(NamesOf(bare->Artifact(*built)) == NamesOf(here_.Artifact(*here)));
  EXPECT_EQ(Counted(*bare, "kernix_nvcc_compiles_total{how=\"phases\"}"), 1);
  bare->AwaitEndOfLearning();
  const int64_t commands = Commands();
  EXPECT_TRUE(bare->Load(request)->cache_hit());
  EXPECT_EQ(Commands(), commands);
}

TEST_F(RemoteBuildTest, AHostWithoutCompilersKeepsPtxAndLinksDeviceCode) {
  KERNIX_NEED_NVCC(nvcc);
  v1::LoadRequest request = CudaRequest(compiler_, nvcc);
  request.mutable_options()->set_keep(true);
  request.mutable_options()->add_compile_flags("-rdc=true");
  const auto toolchain = KnownToolchains().Resolve(request.toolchain(), v1::LANGUAGE_CUDA);
  ASSERT_THAT(toolchain, IsOk());
  StartEngine({(*toolchain)->cuda->root});
  const auto bare = BareHost(request);
  const std::string here = Build(here_, request);
  ASSERT_FALSE(here.empty());
  request.clear_toolchain();
  EXPECT_TRUE(NamesOf(Build(*bare, request)) == NamesOf(here));
}

TEST_F(RemoteBuildTest, ASharedHostWithoutCompilersShowsWhatTheCompilerSays) {
  StartEngine();
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->append("int g() { return nothing; }\n");
  const auto bare = BareHost(request, {.flag_policy = toolchain::FlagPolicy::kShared});
  request.clear_toolchain();
  const v1::ErrorDetail refused = GetErrorDetail(bare->Load(request).status());
  EXPECT_EQ(refused.kind(), v1::ErrorDetail::COMPILATION) << refused.message();
  EXPECT_THAT(refused.compiler_output(), HasSubstr("kernel.cc:8:18: error: 'nothing' was not declared"));
  EXPECT_THAT(refused.compiler_output(), HasSubstr("int g() { return nothing; }"));
  request.mutable_source(0)->mutable_text()->append("#error \"no\"\nasm(\"nonsense 1\");\n");
  EXPECT_THAT(GetErrorDetail(bare->Load(request).status()).compiler_output(), HasSubstr("#error \"no\""));
  v1::LoadRequest assembled = CppRequest(compiler_);
  assembled.clear_toolchain();
  assembled.mutable_source(0)->mutable_text()->append("void g() { asm(\"nonsense 1\"); }\n");
  EXPECT_THAT(GetErrorDetail(bare->Load(assembled).status()).compiler_output(), HasSubstr("no such instruction"));
}

TEST_F(RemoteBuildTest, WhatIsNotDescribedIsNotTakenFromABuilder) {
  const ScratchDirectory folder;
  ASSERT_THAT(Env::Posix().WriteFile(folder / "there.h", "inline int there() { return 1; }\n", 0644), IsOk());
  StartEngine({folder.path()});
  v1::LoadRequest request = CppRequest(compiler_);
  const auto bare = BareHost(request);
  request.clear_toolchain();
  request.mutable_source(0)->mutable_text()->insert(0, StrCat("#include \"", folder / "there.h", "\"\n"));
  const absl::Status refused = bare->Load(request).status();
  EXPECT_EQ(KindOf(refused), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr(StrCat("a worker has read ", folder / "there.h")),
                                       HasSubstr("Describe the toolchain of the workers' image again")));
}

}  // namespace
}  // namespace kernix::build
