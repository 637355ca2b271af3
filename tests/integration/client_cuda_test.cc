// SPDX-License-Identifier: Apache-2.0
//
// CUDA kernels from C++: compiled by a real nvcc, opened, and asked what XLA would ask. No GPU is needed.
#include <gmock/gmock.h>

#include "client/runtime/handler_probe.h"
#include "common/base/strings.h"
#include "kernix/call_frame.h"
#include "kernix/error.h"
#include "kernix/inspection.h"
#include "tests/integration/client_world.h"
#include "tests/support/find_tools.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr char kScale[] = R"(
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void scale_kernel(const float* x, float* out, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * x[i];
}
// @BE scale
void scale(const BE::Tensor& x, BE::Tensor& out, float factor, cudaStream_t stream) {
  int n = x.numel();
  scale_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<const float>(), out.data_ptr<float>(), factor, n);
  BE_CHECK_KERNEL_LAUNCH();
}
)";

class ClientCudaTest : public ClientWorld {
 protected:
  static LoadOptions ForHopper() {
    LoadOptions options;
    options.compute_capability = "sm_90";
    return options;
  }
};

TEST_F(ClientCudaTest, AnInlineKernelAnswersXla) {
  KERNIX_NEED_NVCC(nvcc);
  SetVariable("BRAINEVENT_NVCC_PATH", nvcc);
  const auto module = LoadCudaInline(*MakeClient(), "scaled", {kScale}, ForHopper());
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT((*module)->functions()[0].tokens, ElementsAre("arg", "ret", "attr.factor:float32", "stream"));
  EXPECT_EQ((*module)->functions()[0].traits & 1u, 1u);
  const absl::StatusOr<Handler> handler = (*module)->handler("scale");
  ASSERT_TRUE(handler.ok()) << handler.status();
  EXPECT_TRUE(ProbeHandler(*handler).ok());

  float y = 0;
  const absl::Status status = CallFrame().AddResult(&y, DataType::kFloat32, {1}).Call(*handler);
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("scale"), HasSubstr("argument")));
}

TEST_F(ClientCudaTest, AKernelThatMayNotBeCapturedSaysSo) {
  KERNIX_NEED_NVCC(nvcc);
  SetVariable("BRAINEVENT_NVCC_PATH", nvcc);
  LoadOptions options = ForHopper();
  options.allow_cuda_graph = false;
  const auto module = LoadCudaInline(*MakeClient(), "scaled", {kScale}, options);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ((*module)->functions()[0].traits & 1u, 0u);
}

TEST_F(ClientCudaTest, AFileIsLoadedOnceAndNamedInErrors) {
  KERNIX_NEED_NVCC(nvcc);
  SetVariable("BRAINEVENT_NVCC_PATH", nvcc);
  const std::string path = Path("scale.cu");
  ASSERT_TRUE(Env::Posix().WriteFile(path, kScale, 0600).ok());
  const auto client = MakeClient();
  const auto first = LoadCudaFile(*client, path, ForHopper());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)->name(), "scale");
  EXPECT_FALSE((*first)->cache_hit());
  ASSERT_TRUE(client->Purge({.name = "another"}).ok());  // so that the daemon is asked
  const auto second = LoadCudaFile(*client, path, ForHopper());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE((*second)->cache_hit());
  EXPECT_EQ(*(*first)->handler("scale"), *(*second)->handler("scale"));

  const std::string broken = std::string(kScale) + "__global__ void more() { nothing(); }\n";
  ASSERT_TRUE(Env::Posix().WriteFile(path, broken, 0600).ok());
  const ErrorInfo error = DescribeError(LoadCudaFile(*client, path, ForHopper()).status());
  EXPECT_EQ(error.category, ErrorCategory::kCompilation);
  EXPECT_THAT(error.compiler_output, AllOf(HasSubstr(path), HasSubstr("nothing")));
}

TEST_F(ClientCudaTest, FilesOfBothLanguagesSideBySide) {
  KERNIX_NEED_NVCC(nvcc);
  SetVariable("BRAINEVENT_NVCC_PATH", nvcc);
  ASSERT_TRUE(Env::Posix().WriteFile(Path("scale.cu"), StrCat("int one();\nint used = one();\n", kScale), 0600).ok());
  ASSERT_TRUE(Env::Posix().WriteFile(Path("one.cpp"), "int one() { return 1; }\n", 0600).ok());
  LoadOptions options = ForHopper();
  options.separate = true;
  options.keep = true;
  const auto module = LoadFiles(*MakeClient(), Language::kCuda, "mixed", {Path("scale.cu"), Path("one.cpp")}, options);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ((*module)->functions().size(), 1u);
  const ModuleTexts texts = (*module)->texts().value();
  ASSERT_EQ(texts.units.size(), 2u);
  EXPECT_EQ(texts.units[1].language, Language::kCpp);
  EXPECT_THAT(texts.units[1].sources, ElementsAre("one.cpp"));
  EXPECT_THAT(Ptx(**module).value(), HasSubstr(".entry"));
  EXPECT_THAT(GeneratedSource(**module, "one.cpp").value(), HasSubstr("int one()"));
  const absl::StatusOr<std::vector<KernelResources>> kernels = Resources(**module);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 1u);
  EXPECT_EQ((*kernels)[0].name, "scale_kernel(float const*, float*, float, int)");
  EXPECT_EQ((*kernels)[0].architecture, "sm_90");
  EXPECT_GT((*kernels)[0].registers, 0u);
  ASSERT_TRUE(WriteBuildDirectory(**module, Path("out")).ok());
  EXPECT_THAT(Env::Posix().ListDirectory(Path("out")).value(),
              IsSupersetOf({"mixed.0.kernix.cu", "mixed.0.sm_90.ptx", "mixed.1.kernix.cpp", "mixed.so"}));
}

TEST_F(ClientCudaTest, TheFilesOfAFolder) {
  KERNIX_NEED_NVCC(nvcc);
  SetVariable("BRAINEVENT_NVCC_PATH", nvcc);
  const std::string folder = Path("kernels");
  ASSERT_TRUE(Env::Posix().CreateDirectories(JoinPath(folder, "folder.cu")).ok());
  ASSERT_TRUE(Env::Posix().WriteFile(JoinPath(folder, "b.cu"), kScale, 0600).ok());
  ASSERT_TRUE(Env::Posix().WriteFile(JoinPath(folder, "a.cu"), "#define scale times\n", 0600).ok());
  ASSERT_TRUE(Env::Posix().WriteFile(JoinPath(folder, "c.cpp"), "#error not one of them\n", 0600).ok());
  const auto client = MakeClient();
  LoadOptions options = ForHopper();
  options.functions = std::vector<Function>{{.name = "times", .tokens = {}}};
  const auto module = LoadCudaDir(*client, folder, options);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ((*module)->name(), "kernels");
  EXPECT_EQ((*module)->functions()[0].name, "times");
  EXPECT_FALSE(LoadCudaDir(*client, folder, options, {"b*", "a*"}).ok());  // the macro comes too late

  const absl::Status none = LoadCudaDir(*client, folder, options, {"*.cuh"}).status();
  EXPECT_EQ(DescribeError(none).category, ErrorCategory::kInvalidRequest);
  EXPECT_THAT(none.ToString(), HasSubstr("no file in " + folder + " matches *.cuh"));
}

}  // namespace
}  // namespace kernix
