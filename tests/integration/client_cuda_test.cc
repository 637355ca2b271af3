// SPDX-License-Identifier: Apache-2.0
//
// CUDA kernels from C++: compiled by a real nvcc, opened, and asked what XLA would ask. No GPU is needed.
#include <gmock/gmock.h>

#include <random>

#include "client/load/kernel_resources.h"
#include "client/runtime/handlers.h"
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

// It has shared memory of both kinds, an array in local memory, a bound of threads, and values that only spilling
// holds.
constexpr char kGreedy[] = R"(
__constant__ float table[7];
template <int N> __global__ void __launch_bounds__(1024, 1) greedy(float* p, const float* q) {
  __shared__ float copy[100];
  float values[N];
  #pragma unroll
  for (int i = 0; i < N; ++i) values[i] = q[i * blockDim.x + threadIdx.x];
  copy[threadIdx.x % 100] = values[0];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < N; ++i) {
    float sum = copy[(i + threadIdx.x) % 100];
    #pragma unroll
    for (int j = 0; j < 8; ++j) sum += values[(i * j) % N] * values[(i + j) % N];
    p[i * blockDim.x + threadIdx.x] = sum;
  }
}
__global__ void local(float* p, int n) {
  extern __shared__ double more[];
  float kept[64];
  for (int i = 0; i < n; ++i) kept[i & 63] = p[i] + table[i % 7];
  more[threadIdx.x] = kept[n & 63];
  p[threadIdx.x] = more[1];
}
// @BE run
void run(BE::Tensor x, cudaStream_t stream) {
  float* p = x.data_ptr<float>();
  greedy<96><<<1, 1024, 0, stream>>>(p, p);
  greedy<4><<<1, 1024, 0, stream>>>(p, p);
  local<<<1, 32, 512, stream>>>(p, 3);
}
)";

using Figures = std::map<std::string, std::vector<std::optional<uint64_t>>>;

// By architecture and kernel, without constant memory, which ptxas does not say for all architectures.
Figures FiguresOf(const std::vector<KernelResources>& kernels) {
  Figures figures;
  for (const KernelResources& kernel : kernels) {
    figures[StrCat(kernel.architecture, " ", kernel.symbol)] = {kernel.registers,   kernel.shared_memory,
                                                                kernel.stack_frame, kernel.spill_stores,
                                                                kernel.spill_loads, kernel.barriers};
  }
  return figures;
}

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
  v1::PurgeCacheRequest purge;
  purge.set_name("another");
  ASSERT_TRUE(client->Ask<v1::PurgeCacheResponse>("PurgeCache", purge).ok());  // so that the daemon is asked
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

TEST_F(ClientCudaTest, MachineCodeSaysWhatPtxasSays) {
  KERNIX_NEED_NVCC(nvcc);
  SetVariable("BRAINEVENT_NVCC_PATH", nvcc);
  LoadOptions options = ForHopper();
  options.compute_capability = "sm_80,sm_90";
  options.keep = true;
  std::vector<std::string> warnings;
  options.callbacks.warning = [&](std::string_view text) { warnings.emplace_back(text); };
  const auto module = LoadCudaInline(*MakeClient(), "greedy", {kGreedy}, options);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("greedy<96>(float*, float const*) on sm_80"),
                                          HasSubstr("KERNIX_WARNINGS=no-register-spills"))));

  const ModuleTexts texts = (*module)->texts().value();
  std::vector<KernelResources> reported;
  for (const KeptText& text : texts.kept) {
    if (text.kind != KeptText::Kind::kResources) continue;
    for (const KernelResources& kernel : ReadPtxasReport(text.text, text.architecture)) reported.push_back(kernel);
  }
  const absl::StatusOr<std::vector<KernelResources>> read = KernelsInArtifact((*module)->artifact());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), 6u);
  const Figures figures = FiguresOf(*read);
  if (figures.begin()->second[3]) {  // before CUDA 12.6, machine code says nothing of spills, ptxas nothing of barriers
    EXPECT_EQ(figures, FiguresOf(reported));
  }
}

TEST_F(ClientCudaTest, DamagedMachineCodeIsReadSafely) {
  KERNIX_NEED_NVCC(nvcc);
  SetVariable("BRAINEVENT_NVCC_PATH", nvcc);
  const auto module = LoadCudaInline(*MakeClient(), "greedy", {kGreedy}, ForHopper());
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string whole((*module)->artifact());
  const size_t begin = whole.find("\177ELF", 1);  // the machine code, or the image within it
  ASSERT_NE(begin, std::string::npos);
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    for (int flips = 0; flips < 40; ++flips) damaged[begin + random() % 20000] = static_cast<char>(random());
    const absl::StatusOr<std::vector<KernelResources>> read = KernelsInArtifact(damaged);
    EXPECT_TRUE(read.ok() || !read.status().message().empty());
  }
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
