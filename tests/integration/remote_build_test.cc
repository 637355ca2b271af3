// SPDX-License-Identifier: Apache-2.0
//
// Whole loads whose steps run on the builders of a real engine.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "daemon/remote/remote_executor.h"
#include "daemon/remote/upstream.h"
#include "daemon/remote/upstream_test_util.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/find_tools.h"
#include "tests/support/test_util.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

// The bytes of an artifact.
std::string Build(TestBuilder& t, const v1::LoadRequest& request, std::vector<std::string> headers = {}) {
  RecordingObserver observer(std::move(headers));
  const auto result = t.Load(request, observer);
  EXPECT_THAT(result, IsOk());
  return result.ok() ? t.Artifact(*result) : "";
}

// Two builders with a store each: one runs its steps here, one on the engine.
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

}  // namespace
}  // namespace kernix::build
