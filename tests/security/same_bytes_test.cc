// SPDX-License-Identifier: Apache-2.0
//
// One request, one artifact: the bytes that a member gets for a request are those of a new store, whatever others have
// loaded before, and whatever kernixd has learned from that.
#include <signal.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/strings.h"
#include "daemon/cache/cache.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kSame[] = "16 same request, same bytes";

// By what is special about each.
using Requests = std::map<std::string, Kernel>;

Kernel Named(const std::string& name, Kernel kernel) {
  kernel.request.set_name(name);
  return kernel;
}

Kernel Kept(Kernel kernel) {
  kernel.request.mutable_options()->set_keep(true);
  return kernel;
}

Kernel WithHeader(Kernel kernel) {
  AddHeader(kernel, "mine.h", "#pragma once\n#include <array>\ninline std::array<int, 3> mine;\n");
  return kernel;
}

Kernel WithSecondUnit(Kernel kernel) {
  kernel.request.mutable_options()->set_separate_units(true);
  v1::Source& source = *kernel.request.add_source();
  source.set_label("second.cpp");
  source.set_language(v1::LANGUAGE_CPP);
  source.set_text("#include <vector>\nint OfSecondUnit(int n) { return std::vector<int>(n).size() > 4; }\n");
  return kernel;
}

constexpr char kWarns[] = "static int Unused() { int unused; return 3; }";

Requests CppRequests() {
  const std::string vector = "#include <vector>\nstatic std::vector<int> all;";
  return {{"c++", CppKernel(vector)},
          {"c++, -g", CppKernel(vector, {"-g"})},
          {"c++, a header", WithHeader(CppKernel("#include \"mine.h\"\n#include <vector>\nstd::vector<int> all;"))},
          {"c++, units", WithSecondUnit(CppKernel(vector))},
          {"c++, warns", CppKernel(StrCat("#include <vector>\n", kWarns), {"-Wall"})}};
}

Requests CudaRequests(const std::string& nvcc) {
  const auto fast = [&nvcc](const std::string& before, const std::vector<std::string>& flags = {}) {
    Kernel kernel = CudaKernel(nvcc, before, flags);
    kernel.request.mutable_options()->set_optimization_level(3);
    return kernel;
  };
  const std::string half = "#include <cuda_fp16.h>\n__device__ __half Twice(__half h) { return __hadd(h, h); }";
  return {{"cuda", fast("__device__ int mine;")},
          {"cuda, -lineinfo", fast(half, {"-lineinfo"})},
          {"cuda, a macro", fast("#include <cuda_fp16.h>\n__device__ int value = VALUE;", {"-DVALUE=7"})},
          {"cuda, cub", fast("#include <cub/block/block_reduce.cuh>\n__device__ int mine;")},
          {"cuda, half types", fast(half)},
          {"cuda, kept texts", Kept(fast("__device__ int mine;"))},
          {"cuda, -O0", CudaKernel(nvcc, "__device__ int mine;")},
          {"cuda, units", WithSecondUnit(fast("__device__ int mine;"))},
          {"cuda, warns", fast(kWarns, {"-Xcompiler=-Wall"})}};
}

// The same device code on the same lines, with other host code behind it; what kernixd keeps of it may serve.
Kernel LongerTwin(Kernel kernel) {
  kernel.request.mutable_source(0)->mutable_text()->append(
      "\n// of another\nstatic int others __attribute__((unused));\n");
  return kernel;
}

// The same code on other lines.
Kernel ShiftedTwin(Kernel kernel) {
  v1::Source& source = *kernel.request.mutable_source(0);
  source.set_text(StrCat("// of another\n\n", source.text()));
  return kernel;
}

Kernel Forced(Kernel kernel) {
  kernel.request.set_force_rebuild(true);
  return kernel;
}

std::vector<Kernel> Twins(const Requests& requests, Kernel (*twin)(Kernel)) {
  std::vector<Kernel> twins;
  for (const auto& [name, kernel] : requests) twins.push_back(Named(name, twin(kernel)));
  return twins;
}

// Of several heads, flags and names; every tenth does not compile.
std::vector<Kernel> ManyCppKernels(int count) {
  const std::vector<std::string> heads = {"#include <vector>\n", "#include <vector>\n#include <map>\n", ""};
  const std::vector<std::vector<std::string>> flags = {{}, {"-g"}, {"-Wall"}, {"-DVALUE=8"}, {"-O2"}};
  std::vector<Kernel> kernels;
  for (int i = 0; i < count; ++i) {
    const std::string body = i % 10 == 9 ? "int broken = ;" : StrCat("int of_others = ", i, ";");
    kernels.push_back(Named(StrCat("other", i % 20), CppKernel(heads[i % 3] + body, flags[i % 5])));
  }
  return kernels;
}

// What a client gets for a request.
struct Got {
  std::string artifact;
  std::string answer;
  std::string key;
};

Got Get(server::TestClient& client, const Kernel& kernel) {
  server::LoadOutcome outcome = Load(client, kernel);
  if (!outcome.result) return {.artifact = "", .answer = Answer(outcome), .key = ""};
  v1::LoadResult& result = *outcome.result;
  const std::string key = result.key();
  std::string artifact = client.Fetch(result.artifact_digest()).value_or("");
  result.clear_artifact_path();
  result.clear_build_ms();
  result.clear_miss_reason();
  result.clear_cache_hit();
  return {.artifact = std::move(artifact), .answer = result.DebugString(), .key = key};
}

// "" if they are the same.
std::string Difference(const Got& a, const Got& b) {
  if (a.artifact == b.artifact) return a.answer == b.answer ? "" : StrCat(a.answer, "\n  and\n", b.answer);
  const size_t shorter = std::min(a.artifact.size(), b.artifact.size());
  const auto end = a.artifact.begin() + static_cast<ptrdiff_t>(shorter);
  const auto at = std::mismatch(a.artifact.begin(), end, b.artifact.begin()).first - a.artifact.begin();
  return StrCat(a.artifact.size(), " and ", b.artifact.size(), " bytes, other ones from byte ", at, " on");
}

// g++ alone reads these, with the whole cuda_runtime.h. What is compiled with a stand-in does not depend on them.
bool IsOfWholeHeaderOnly(const StatedHeader& header) {
  return header.name.ends_with("/crt/func_macro.h") || header.name.ends_with("/math_constants.h");
}

class SameBytesTest : public SecurityTest {
 protected:
  // A kernixd with a new store takes the place of the one before.
  void ServeNewStore() {
    Stop();
    store_ = MakeFolder(StrCat("store", ++stores_), TheUsers().service, 0750);
    process_ = Start(Config(store_, "", /*with_nvcc=*/true));
    ASSERT_THAT(process_->AwaitReady(), IsOk());
  }

  // Compares what the member gets on new stores with what he gets after another member.
  void CompareWithNewStores(const Requests& requests, const std::vector<Kernel>& others) {
    const std::map<std::string, Got> alone = LoadOnNewStores(requests);
    ServeNewStore();
    const auto mine = Connect(TheUsers().member);
    const auto compare = [&](const Requests& which, const std::string& when) {
      for (const auto& [name, kernel] : which) {
        Judge(kSame, StrCat(name, " ", when), Difference(alone.at(name), Get(*mine, kernel)));
      }
    };
    // Every other one comes while lessons are learned from what others have loaded.
    Requests early, late;
    for (const auto& [name, kernel] : requests) (early.size() > late.size() ? late : early)[name] = kernel;
    LoadAsOther(others);
    LoadAsOther(Twins(requests, &LongerTwin));
    compare(early, "while kernixd learns");
    Connect(0)->AwaitEndOfLearning();
    LoadAsOther(Twins(late, &ShiftedTwin));  // the first ones have taught what these need to teach more
    Connect(0)->AwaitEndOfLearning();
    compare(late, "after all lessons");
    LoadAsOther(Twins(requests, &Forced));
    compare(requests, "after others have forced it");
    for (const auto& [name, kernel] : requests) {
      Judge(kSame, StrCat(name, " forced"), Difference(alone.at(name), Get(*mine, Forced(kernel))));
    }
    for (const auto& [key, headers] : RecordedHeaders(alone)) {
      Judge(kSame, "the recorded headers", headers == recorded_.at(key) ? "" : "the store recorded other ones");
    }
  }

 private:
  using Headers = std::vector<StatedHeader>;

  void Stop() {
    if (process_ == nullptr) return;
    process_->Signal(SIGTERM);
    process_->AwaitExit();
    process_ = nullptr;
  }

  // What the member gets for each request on a store of its own.
  std::map<std::string, Got> LoadOnNewStores(const Requests& requests) {
    std::map<std::string, Got> alone;
    for (const auto& [name, kernel] : requests) {
      ServeNewStore();
      const Got got = Get(*Connect(TheUsers().member), kernel);
      JudgeTwin(kSame, name, got.artifact.empty() ? got.answer : "");
      alone[name] = got;
      recorded_.merge(RecordedHeaders({{name, got}}));
    }
    return alone;
  }

  // The headers of the toolchain on which each artifact depends, by key, from a copy of the store. Stops kernixd.
  std::map<std::string, Headers> RecordedHeaders(const std::map<std::string, Got>& artifacts) {
    Stop();
    const std::string copy = store_ + "-copy";
    EXPECT_EQ(RunAs(0, {"/bin/cp", "-r", store_, copy}).exit_code, 0);
    const auto cache = cache::Cache::Open(Env::Posix(), {.directory = copy});
    EXPECT_THAT(cache, IsOk());
    std::map<std::string, Headers> found;
    for (const auto& [name, got] : artifacts) {
      const absl::StatusOr<Digest> key = Digest::FromRaw(got.key);
      const auto entry = key.ok() && cache.ok() ? (*cache)->Find(*key) : std::nullopt;
      const bool is_there = entry.ok() && entry->has_value();
      EXPECT_TRUE(is_there) << name;
      if (!is_there) continue;
      found[got.key] = (*entry)->toolchain_headers;
      std::erase_if(found[got.key], IsOfWholeHeaderOnly);
    }
    return found;
  }

  // Loads them, some at a time. Not all of them compile.
  void LoadAsOther(const std::vector<Kernel>& kernels) {
    constexpr size_t kAtOnce = 4;
    std::vector<std::thread> threads;
    for (size_t first = 0; first < kAtOnce; ++first) {
      threads.emplace_back([&, first] {
        const auto client = Connect(TheUsers().other);
        for (size_t i = first; i < kernels.size(); i += kAtOnce) Load(*client, kernels[i]);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::unique_ptr<KernixdProcess> process_;
  std::string store_;
  int stores_ = 0;
  std::map<std::string, Headers> recorded_;  // on new stores
};

TEST_F(SameBytesTest, OfCppKernels) {
  ServeNewStore();
  CompareWithNewStores(CppRequests(), ManyCppKernels(90));
}

TEST_F(SameBytesTest, OfCudaKernels) {
  ServeNewStore();
  if (nvcc().empty()) GTEST_SKIP() << "no nvcc: `make setup` installs one";
  CompareWithNewStores(CudaRequests(nvcc()), ManyCppKernels(30));
}

}  // namespace
}  // namespace kernix::security
