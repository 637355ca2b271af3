// SPDX-License-Identifier: Apache-2.0
//
// For tests: requests, and everything that a builder needs, with real tools.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "daemon/builder/builder.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/toolchain/description.h"
#include "tests/support/await.h"
#include "tests/support/find_tools.h"
#include "tests/support/inline_executor.h"
#include "tests/support/test_util.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::build {

// A load of one function "f" that adds `summand` to its argument.
inline v1::LoadRequest CppRequest(const std::string& compiler, int summand = 1) {
  v1::LoadRequest request;
  request.set_name("module");
  request.set_language(v1::LANGUAGE_CPP);
  v1::Source* source = request.add_source();
  source->set_label("kernel.cc");
  source->set_text(StrCat("#include \"brainevent/common.h\"\n",
                          "// @BE f arg ret\n"
                          "void f(const BE::Tensor x, BE::Tensor y) {\n"
                          "  const float* from = static_cast<const float*>(x.data_ptr());\n"
                          "  float* to = static_cast<float*>(y.data_ptr());\n"
                          "  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] + ",
                          summand, ";\n}\n"));
  request.mutable_functions()->set_from_annotations(true);
  request.mutable_options()->set_optimization_level(3);
  request.mutable_options()->set_allow_cuda_graph(true);
  request.mutable_toolchain()->set_host_compiler(compiler);
  return request;
}

inline v1::LoadRequest CudaRequest(const std::string& compiler, const std::string& nvcc) {
  v1::LoadRequest request = CppRequest(compiler);
  request.set_language(v1::LANGUAGE_CUDA);
  request.mutable_source(0)->set_label("kernel.cu");
  request.mutable_source(0)->set_text(
      "#include <cuda_runtime.h>\n"
      "#include \"brainevent/common.h\"\n"
      "namespace {\n"
      "__global__ void add_kernel(const float* a, const float* b, float* out, int n) {\n"
      "  int idx = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (idx < n) out[idx] = a[idx] + b[idx];\n"
      "}\n"
      "}\n"
      "// @BE f arg arg ret stream\n"
      "void f(const BE::Tensor a, const BE::Tensor b, BE::Tensor out, int64_t stream) {\n"
      "  int n = a.numel();\n"
      "  add_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(\n"
      "      static_cast<const float*>(a.data_ptr()), static_cast<const float*>(b.data_ptr()),\n"
      "      static_cast<float*>(out.data_ptr()), n);\n"
      "  BE_CHECK_KERNEL_LAUNCH();\n"
      "}\n");
  request.mutable_options()->add_architectures("sm_90");
  request.mutable_toolchain()->set_nvcc(nvcc);
  return request;
}

// Adds a header to the request. The observer must be able to provide its content.
inline void AddHeader(v1::LoadRequest& request, uint32_t root, const std::string& path, const std::string& text) {
  v1::Header* header = request.add_header();
  header->set_include_root(root);
  header->set_path(path);
  header->set_digest(DigestOf(text).Raw());
  header->set_size(text.size());
  request.mutable_options()->set_include_root_count(std::max(root + 1, request.options().include_root_count()));
}

// Provides the contents that it was given.
class RecordingObserver : public LoadObserver {
 public:
  explicit RecordingObserver(std::vector<std::string> headers = {}) : headers_(std::move(headers)) {}

  absl::StatusOr<HeaderContents> FetchHeaders(const std::vector<Digest>&) override {
    ++fetches;
    HeaderContents contents;
    for (const std::string& text : headers_) contents[DigestOf(text)] = exec::MakeContent(text);
    return contents;
  }
  void OnProgress(const v1::Progress& p) override { progress.push_back(p); }
  void OnOutput(const v1::Output& piece) override { StrAppend(&output, piece.command(), "\n", piece.text()); }

  int fetches = 0;
  std::vector<v1::Progress> progress;
  std::string output;

 private:
  const std::vector<std::string> headers_;
};

// An Env that can make a file look changed, and has a clock that a test can move forward.
class ChangingEnv : public remote::SteppedEnv {
 public:
  void PretendChanged(const std::string& path) {
    const MutexLock lock(mutex_);
    changed_ = path;
  }

  // Changes only the file's time stamp.
  void PretendFromTheFuture(const std::string& path) {
    const MutexLock lock(mutex_);
    from_the_future_ = path;
  }

  absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow) override {
    absl::StatusOr<FileInfo> info = FaultEnv::Stat(path, follow);
    if (info.ok() && IsChanged(path)) ++info->inode;
    if (info.ok() && IsFromTheFuture(path)) info->ctime_ns += 1'000'000'000'000'000'000;  // thirty years
    return info;
  }

  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    absl::StatusOr<std::string> content = FaultEnv::ReadFile(path);
    if (content.ok() && IsChanged(path)) content->append("// changed\n");
    return content;
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(const std::string& path) override {
    if (IsChanged(path)) return absl::InternalError("read it whole");
    return FaultEnv::OpenFile(path);
  }

 private:
  bool IsFromTheFuture(const std::string& path) {
    const MutexLock lock(mutex_);
    return path == from_the_future_;
  }

  bool IsChanged(const std::string& path) {
    const MutexLock lock(mutex_);
    return path == changed_;
  }

  Mutex mutex_;
  std::string changed_ ABSL_GUARDED_BY(mutex_);
  std::string from_the_future_ ABSL_GUARDED_BY(mutex_);
};

// This machine's tools, examined once for all tests of a program, because that takes longer than a build.
inline toolchain::ToolchainRegistry& KnownToolchains() {
  static auto& toolchains = *new toolchain::ToolchainRegistry(Env::Posix());
  return toolchains;
}

// A builder with its own store and scratch folder.
struct TestBuilder {
  enum class On { kInlineExecutor, kLocalExecutor };
  // kOwn: this builder examines the tools itself, through its `env`.
  enum class Tools { kKnown, kOwn };
  enum class Lessons { kNone, kAll };

  explicit TestBuilder(On on, BuilderOptions options = {}, Tools tools = Tools::kKnown,
                       Lessons lessons = Lessons::kNone)
      : options_(std::move(options)) {
    auto opened = cache::Cache::Open(env, {folder / "store", 1 << 30});
    EXPECT_THAT(opened, IsOk());
    cache = *std::move(opened);
    if (tools == Tools::kOwn) own_toolchains = std::make_unique<toolchain::ToolchainRegistry>(env);
    const exec::RunOptions run{cache->scratch_directory()};
    executor = on == On::kInlineExecutor ? exec::MakeInlineExecutor(env, run)
                                         : exec::MakeLocalExecutor(env, {.run = run, .max_jobs = 4});
    if (lessons == Lessons::kAll) background = exec::MakeLocalExecutor(env, {.run = run, .max_jobs = 1});
    RunOn(std::move(executor));
  }

  // Makes a new builder, for the same store.
  void RunOn(std::unique_ptr<exec::Executor> another) {
    builder.reset();
    executor = std::move(another);
    builder = std::make_unique<Builder>(env, options_, toolchains(), *executor, *cache, background.get(),
                                        upstream_cache.get());
  }

  // Lets it share results through an engine from now on.
  void Share(const remote::UpstreamOptions& engine, remote::SharingTrust trust = {},
             UpstreamCacheOptions sharing = {.write = true}) {
    builder.reset();
    StopSharing();
    sharing.address = engine.address;
    upstream = *remote::Upstream::Open(env, engine);
    results = std::make_unique<remote::SharedResults>(*upstream, std::move(trust));
    claims = std::make_unique<remote::BuildClaims>(*upstream, folder.path());
    upstream_cache = std::make_unique<UpstreamCache>(env, toolchains().digests(), *results, *claims, sharing);
    RunOn(std::move(executor));
  }

  // Returns when what was built has been written.
  void StopSharing() {
    builder.reset();
    upstream_cache.reset();
  }

  absl::StatusOr<v1::LoadResult> Load(const v1::LoadRequest& request, RecordingObserver& observer) {
    return builder->Load(request, UserId{1000}, observer, nullptr);
  }
  absl::StatusOr<v1::LoadResult> Load(const v1::LoadRequest& request) {
    RecordingObserver observer;
    return Load(request, observer);
  }
  // Makes this a host without compilers, which goes by the description of this machine's. Before it shares anything.
  void DescribeTools(const v1::LoadRequest& request) {
    const auto tools = KnownToolchains().Resolve(request.toolchain(), request.language());
    const auto text = toolchain::DescribeToolchain(env, KnownToolchains().digests(), **tools);
    EXPECT_THAT(env.WriteFile(folder / "description", *text, 0600), IsOk());
    own_toolchains = std::make_unique<toolchain::ToolchainRegistry>(env, "CXX", folder / "description");
    RunOn(std::move(executor));
  }
  void AwaitEndOfLearning() const {
    Await("the end of all learning", [this] { return builder->LessonsLeft() == 0; });
  }
  toolchain::ToolchainRegistry& toolchains() { return own_toolchains ? *own_toolchains : KnownToolchains(); }
  v1::GetCacheStatsResponse Stats() { return cache->Stats(); }
  std::string Artifact(const v1::LoadResult& result) {
    return Env::Posix().ReadFile(cache->BlobPath(Digest::FromRaw(result.artifact_digest()).value())).value();
  }

  const ScratchDirectory folder;
  ChangingEnv env;
  std::unique_ptr<toolchain::ToolchainRegistry> own_toolchains;
  std::unique_ptr<cache::Cache> cache;
  std::unique_ptr<exec::Executor> executor;
  std::unique_ptr<exec::Executor> background;
  BuilderOptions options_;
  std::unique_ptr<remote::Upstream> upstream;
  std::unique_ptr<remote::SharedResults> results;
  std::unique_ptr<remote::BuildClaims> claims;
  std::unique_ptr<UpstreamCache> upstream_cache;
  std::unique_ptr<Builder> builder;
};

// The value of a counter of the builder's, as kernixctl's metrics show it. -1: there is none of that name.
inline int Counted(const TestBuilder& t, std::string_view sample) {
  MetricsRegistry registry;
  t.builder->Register(registry);
  const std::string text = registry.Text();
  const std::string line = StrCat(sample, " ");
  const size_t at = text.find(line);
  return at == std::string::npos ? -1 : std::stoi(text.substr(at + line.size()));
}

}  // namespace kernix::build
