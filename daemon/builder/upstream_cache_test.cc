// SPDX-License-Identifier: Apache-2.0
//
// Nodes that share results through a real engine.
#include "daemon/builder/upstream_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "build/bazel/remote/execution/v2/remote_execution.pb.h"
#include "common/base/error.h"
#include "daemon/builder/step_runner.h"
#include "daemon/exec/executor.h"
#include "tests/support/await.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/fault_proxy.h"
#include "tests/support/temp_folder.h"
#include "tests/support/testing_load.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::build {
namespace {

namespace reapi = ::build::bazel::remote::execution::v2;

using kernix::testing::CasdProcess;
using kernix::testing::FaultProxy;
using kernix::testing::TempFolder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

// A host with a store of its own.
struct Node : TestBuilder {
  explicit Node(Tools tools = Tools::kKnown) : TestBuilder(On::kLocalExecutor, {}, tools) {}

  void Build(const v1::LoadRequest& request) {
    const auto built = Load(request);
    ASSERT_THAT(built, IsOk());
    EXPECT_FALSE(built->cache_hit());
  }

  // What a lookup of user 1000 is told; nothing if it must load.
  std::optional<v1::LoadResult> LookUp(const v1::LoadRequest& request) {
    std::optional<v1::LoadResult> told;
    builder->LookUp(request, UserId{1000}, [&](const v1::LoadResult& hit) {
      told = hit;
      return true;
    });
    return told;
  }

  int64_t Steps(const std::string& how) {
    MetricsRegistry registry;
    builder->Register(registry);
    const std::string text = registry.Text();
    const std::string sample = StrCat("kernix_reusable_steps_total{how=\"", how, "\"} ");
    const size_t at = text.find(sample);
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + sample.size()));
  }
};

class SharingTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = new CasdProcess; }
  static void TearDownTestSuite() { delete std::exchange(engine_, nullptr); }

  static remote::UpstreamOptions Engine() { return {.address = engine_->address()}; }

  // A kernel for one test: other tests share the engine.
  v1::LoadRequest Request() {
    static int number = 0;
    return CppRequest("/usr/bin/g++", ++number);
  }

  static CasdProcess* engine_;
};

CasdProcess* SharingTest::engine_ = nullptr;

// The value of a metric.
template <typename Measured>
int64_t Sample(const Measured& measured, const std::string& sample) {
  MetricsRegistry registry;
  measured.Register(registry);
  const std::string text = registry.Text();
  const size_t at = text.find("\n" + sample + " ");
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + sample.size() + 2));
}

TEST_F(SharingTest, ANodeTakesWhatAnotherOneHasBuilt) {
  const v1::LoadRequest request = Request();
  Node first;
  first.Share(Engine());
  const auto built = first.Load(request);
  ASSERT_THAT(built, IsOk());
  EXPECT_FALSE(built->from_upstream());
  first.StopSharing();

  Node second;
  second.Share(Engine());
  const auto taken = second.Load(request);
  ASSERT_THAT(taken, IsOk());
  EXPECT_TRUE(taken->from_upstream());
  EXPECT_TRUE(taken->cache_hit());
  EXPECT_EQ(taken->miss_reason(), "");
  EXPECT_EQ(second.Artifact(*taken), first.Artifact(*built));
  EXPECT_EQ(taken->required_symbol_versions_size(), built->required_symbol_versions_size());
  const v1::GetCacheStatsResponse stats = second.Stats();
  EXPECT_EQ(stats.builds(), 0u);
  EXPECT_EQ(stats.upstream_hits(), 1u);
  EXPECT_EQ(stats.misses(), 1u);

  const auto again = second.Load(request);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->cache_hit());
  EXPECT_FALSE(again->from_upstream());
  EXPECT_EQ(second.Stats().upstream_hits(), 1u);
}

TEST_F(SharingTest, ALoadThatMayNotCompileTakesWhatAnotherNodeHasBuilt) {
  v1::LoadRequest request = Request();
  AddHeader(request, 0, "x.h", "int a;\n");
  Node first, second;
  second.Share(Engine());
  request.set_only_cached(true);
  RecordingObserver observer({"int a;\n"});
  EXPECT_EQ(KindOf(second.Load(request, observer).status()), v1::ErrorDetail::NOT_CACHED);

  request.set_only_cached(false);
  first.Share(Engine());
  RecordingObserver uploads({"int a;\n"});
  ASSERT_THAT(first.Load(request, uploads), IsOk());
  first.StopSharing();

  request.set_only_cached(true);
  const auto taken = second.Load(request, observer);
  ASSERT_THAT(taken, IsOk());
  EXPECT_TRUE(taken->from_upstream());
  EXPECT_EQ(observer.fetches, 0) << "it needs no header";
  EXPECT_EQ(second.Stats().builds(), 0u);
  EXPECT_EQ(second.Stats().failures(), 0u);
}

TEST_F(SharingTest, ALookupAsksNoEngine) {
  const v1::LoadRequest request = Request();
  FaultProxy proxy(engine_->address());
  Node node;
  node.Share({.address = proxy.address()});
  EXPECT_THAT(node.toolchains().Resolve(request.toolchain(), request.language()), IsOk());  // no lookup does that
  EXPECT_FALSE(node.LookUp(request));
  EXPECT_EQ(proxy.Calls("GetActionResult"), 0);
}

TEST_F(SharingTest, AForcedBuildAsksNobody) {
  v1::LoadRequest request = Request();
  Node first;
  first.Share(Engine());
  first.Build(request);
  first.StopSharing();
  Node second;
  second.Share(Engine());
  request.set_force_rebuild(true);
  second.Build(request);
  EXPECT_EQ(second.Stats().builds(), 1u);
}

v1::LoadRequest WithoutTools(v1::LoadRequest request) {
  request.clear_toolchain();
  return request;
}

TEST_F(SharingTest, ANodeWithoutCompilersTakesWhatAnotherOneHasBuilt) {
  KERNIX_NEED_NVCC(nvcc);
  Node builds, bare;
  builds.Share(Engine());
  const v1::LoadRequest cpp = Request();
  v1::LoadRequest cuda = CudaRequest("/usr/bin/g++", nvcc);
  cuda.mutable_source(0)->mutable_text()->append("// for a node without compilers\n");
  bare.DescribeTools(cuda);
  bare.Share(Engine(), {}, {.write = false});
  for (const v1::LoadRequest& request : {cpp, cuda}) {
    const auto missing = bare.Load(WithoutTools(request));
    EXPECT_EQ(KindOf(missing.status()), v1::ErrorDetail::NOT_CACHED);
    EXPECT_THAT(missing.status().message(),
                AllOf(HasSubstr("this node has no compiler for module \"module\""),
                      HasSubstr(StrCat("the engine at ", engine_->address(), " has no matching result")),
                      HasSubstr("prefetch them on a node with /usr/bin/g++")));
    builds.Build(request);
  }
  builds.StopSharing();
  for (const v1::LoadRequest& request : {cpp, cuda}) {
    const auto taken = bare.Load(WithoutTools(request));
    ASSERT_THAT(taken, IsOk());
    EXPECT_TRUE(taken->from_upstream());
  }
  bare.StopSharing();
  bare.RunOn(std::move(bare.executor));
  for (const v1::LoadRequest& request : {cpp, cuda}) {
    const auto again = bare.Load(WithoutTools(request));
    ASSERT_THAT(again, IsOk());
    EXPECT_TRUE(again->cache_hit());
    bool delivered = false;
    EXPECT_TRUE(bare.builder->LookUp(WithoutTools(request), UserId{1000}, [&](const v1::LoadResult& hit) {
      EXPECT_EQ(hit.artifact_digest(), again->artifact_digest());
      return delivered = true;
    }));
    EXPECT_TRUE(delivered);
  }
  EXPECT_EQ(bare.Stats().builds(), 0u);
  EXPECT_EQ(bare.Stats().failures(), 0u);
}

// What the other node has built stays away until the first query for it is over.
TEST_F(SharingTest, ANodeWithoutCompilersWaitsForANodeThatBuilds) {
  const v1::LoadRequest request = Request();
  FaultProxy proxy(engine_->address());
  Node builds, bare;
  builds.Share({.address = proxy.address()}, {}, {.write = true, .build_once = true});
  bare.DescribeTools(request);
  bare.Share(Engine(), {}, {.write = false, .build_once = true});
  auto built = std::async(std::launch::async, [&] { return builds.Load(request); });
  Await("the claim", [&] { return Sample(*builds.upstream_cache, "kernix_upstream_turns_total{turn=\"own\"}") == 1; });
  std::promise<void> release;
  proxy.Inject(
      {.method = "BatchUpdateBlobs", .times = 0, .change = [go = release.get_future().share()](auto&) { go.wait(); }});
  auto taken = std::async(std::launch::async, [&] { return bare.Load(WithoutTools(request)); });
  Await("a query", [&] { return Sample(*bare.results, "kernix_upstream_lookups_total{result=\"absent\"}") >= 1; });
  release.set_value();
  EXPECT_THAT(AwaitValue("the build", std::move(built)), IsOk());
  const auto result = AwaitValue("what it has built", std::move(taken));
  ASSERT_THAT(result, IsOk());
  EXPECT_TRUE(result->from_upstream());
  const auto missing = bare.Load(WithoutTools(Request()));
  EXPECT_EQ(KindOf(missing.status()), v1::ErrorDetail::NOT_CACHED) << "nobody builds this one";
}

// What the description says of headers decides, not what lies on the node.
TEST_F(SharingTest, ANodeWithoutCompilersTakesNothingThatOtherHeadersHaveMade) {
  constexpr char kHeader[] = "/usr/include/locale.h";
  v1::LoadRequest request = Request();
  request.mutable_source(0)->mutable_text()->insert(0, "#include <locale.h>\n");
  Node other(TestBuilder::Tools::kOwn), bare;
  other.env.PretendChanged(kHeader);
  other.Share(Engine());
  other.Build(request);
  other.StopSharing();
  bare.DescribeTools(request);
  bare.Share(Engine(), {}, {.write = false});
  EXPECT_EQ(KindOf(bare.Load(WithoutTools(request)).status()), v1::ErrorDetail::NOT_CACHED);

  Node same;
  same.Share(Engine());
  const auto built = same.Load(request);
  ASSERT_THAT(built, IsOk());
  same.StopSharing();
  bare.env.PretendChanged(kHeader);
  const auto taken = bare.Load(WithoutTools(request));
  ASSERT_THAT(taken, IsOk());
  EXPECT_TRUE(taken->from_upstream());
  EXPECT_EQ(bare.Artifact(*taken), same.Artifact(*built));
}

TEST_F(SharingTest, ANodeWithoutCompilersSaysWhatItCannotDo) {
  v1::LoadRequest request = Request();
  Node bare;
  bare.DescribeTools(request);
  const auto alone = bare.Load(WithoutTools(request));
  EXPECT_EQ(KindOf(alone.status()), v1::ErrorDetail::NOT_CACHED);
  EXPECT_THAT(alone.status().message(), HasSubstr("upstream.address names no engine to take them from"));
  request.set_force_rebuild(true);
  const auto forced = bare.Load(WithoutTools(request));
  EXPECT_EQ(KindOf(forced.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(forced.status().message(), HasSubstr("force_rebuild needs a compiler"));
}

// The same compilers, and one header of the system differs.
TEST_F(SharingTest, ANodeTakesNothingThatOtherHeadersHaveMade) {
  constexpr char kHeader[] = "/usr/include/locale.h";
  v1::LoadRequest request = Request();
  request.mutable_source(0)->mutable_text()->insert(0, "#include <locale.h>\n");
  Node first;
  first.Share(Engine());
  first.Build(request);
  first.StopSharing();

  Node other(TestBuilder::Tools::kOwn);
  other.env.PretendChanged(kHeader);
  other.Share(Engine());
  other.Build(request);
  other.StopSharing();

  // Both results stand side by side.
  Node like_first;
  like_first.Share(Engine());
  const auto taken = like_first.Load(request);
  ASSERT_THAT(taken, IsOk());
  EXPECT_TRUE(taken->from_upstream());
  Node like_other(TestBuilder::Tools::kOwn);
  like_other.env.PretendChanged(kHeader);
  like_other.Share(Engine());
  const auto taken_by_other = like_other.Load(request);
  ASSERT_THAT(taken_by_other, IsOk());
  EXPECT_TRUE(taken_by_other->from_upstream());
}

// Its headers say something of this node's own files.
TEST_F(SharingTest, WhatHasReadOtherFilesIsNotShared) {
  const TempFolder folder;
  const std::string mine = folder.Write("mine.h", "");
  for (const std::string& text : {StrCat("#include \"", mine, "\"\n"), StrCat("asm(\".incbin \\\"", mine, "\\\"\");\n"),
                                  StrCat("#include \"../../../../../../../../../../../../../../../..", mine, "\"\n")}) {
    v1::LoadRequest request = Request();
    request.mutable_source(0)->mutable_text()->insert(0, text);
    Node first;
    first.Share(Engine());
    first.Build(request);
    first.StopSharing();
    Node second;
    second.Share(Engine());
    second.Build(request);
  }
}

// With -g, a step of its own compiles what all handlers share. The engine gets its result.
v1::LoadRequest WithSharedStep(v1::LoadRequest request) {
  request.mutable_options()->add_compile_flags("-g");
  return request;
}

TEST_F(SharingTest, NodesShareSteps) {
  Node first;
  first.Share(Engine());
  first.Build(WithSharedStep(Request()));
  EXPECT_EQ(first.Steps("upstream"), 0);
  first.StopSharing();

  Node second;
  second.Share(Engine());
  second.Build(WithSharedStep(Request()));
  EXPECT_EQ(second.Steps("upstream"), 1);
  EXPECT_EQ(second.Steps("run"), 0);
}

TEST_F(SharingTest, ANodeWritesAndReadsOnlyIfItMay) {
  const v1::LoadRequest request = Request();
  Node silent;
  silent.Share(Engine(), {}, {.write = false});
  silent.Build(request);
  silent.StopSharing();
  Node writer;
  writer.Share(Engine(), {}, {.read = false, .write = true});
  writer.Build(request);
  writer.StopSharing();
  Node deaf;
  deaf.Share(Engine(), {}, {.read = false, .write = true});
  deaf.Build(request);
  deaf.StopSharing();  // while it writes, nobody is sure to find the result
  Node reader;
  reader.Share(Engine());
  const auto taken = reader.Load(request);
  ASSERT_THAT(taken, IsOk());
  EXPECT_TRUE(taken->from_upstream());
}

TEST_F(SharingTest, OneOfManyNodesBuilds) {
  const v1::LoadRequest request = Request();
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 5; ++i) {
    nodes.push_back(std::make_unique<Node>());
    nodes.back()->Share(Engine(), {}, {.write = true, .build_once = true});
  }
  std::vector<std::thread> loads;
  for (const auto& node : nodes) {
    loads.emplace_back([&node, &request] { EXPECT_THAT(node->Load(request), IsOk()); });
  }
  for (std::thread& load : loads) load.join();
  uint64_t builds = 0;
  uint64_t taken = 0;
  for (const auto& node : nodes) {
    builds += node->Stats().builds();
    taken += node->Stats().upstream_hits();
  }
  EXPECT_EQ(builds, 1u);
  EXPECT_EQ(taken, 4u);
}

TEST_F(SharingTest, NobodyWaitsForANodeWhoseCompilerRefuses) {
  v1::LoadRequest request = Request();
  request.mutable_source(0)->mutable_text()->append("#error not like this\n");
  Node first;
  Node second;
  for (Node* node : {&first, &second}) {
    node->Share(Engine(), {}, {.write = true, .build_once = true});
    EXPECT_EQ(KindOf(node->Load(request).status()), v1::ErrorDetail::COMPILATION);
  }
}

TEST_F(SharingTest, ANodeTakesNothingThatItsStoreHasNoRoomFor) {
  const v1::LoadRequest request = Request();
  Node first;
  first.Share(Engine());
  first.Build(request);
  first.StopSharing();
  Node second;
  second.Share(Engine());
  second.cache->SetLimits({.bytes = 1'000});
  second.Build(request);
  EXPECT_EQ(Sample(*second.results, "kernix_upstream_results_too_large_total"), 1);
}

// Whoever may write can write anything.
TEST_F(SharingTest, WhatIsNoArtifactOfTheseFunctionsIsNotTaken) {
  const v1::LoadRequest request = Request();
  Node first;
  const auto built = first.Load(request);
  ASSERT_THAT(built, IsOk());
  const Digest key = Digest::FromRaw(built->key()).value();
  first.Share(Engine());
  remote::SharedResult nonsense;
  nonsense.files.emplace_back("artifact", exec::MakeContent("no ELF file"));
  ASSERT_THAT(first.results->Put(key, nonsense, nullptr), IsOk());
  Node second;
  second.Share(Engine());
  second.Build(request);
}

TEST_F(SharingTest, ANodeBuildsForItselfIfTheEngineDoesNotAnswer) {
  const TempFolder folder;
  Node node;
  node.Share({.address = StrCat("unix://", folder.File("nobody")), .timeout = Duration(100)});
  node.Build(Request());
  node.Build(Request());
  EXPECT_EQ(node.Stats().builds(), 2u);
}

// The engine's answers as a load meets them; upstream_fault_test.cc has them call by call.
TEST_F(SharingTest, WhateverTheEngineDoesWrongALoadIsBuilt) {
  const v1::LoadRequest request = Request();
  Node first;
  first.Share(Engine());
  const auto built = first.Load(request);
  ASSERT_THAT(built, IsOk());
  first.StopSharing();

  const auto other_bytes = [](google::protobuf::Message& message) {
    for (auto& blob : *static_cast<reapi::BatchReadBlobsResponse&>(message).mutable_responses()) {
      blob.mutable_data()->back() ^= 1;
    }
  };
  const auto nothing = [](google::protobuf::Message& message) {
    static_cast<reapi::BatchReadBlobsResponse&>(message).clear_responses();
  };
  const auto fails = [](const char* method, grpc::StatusCode code) {
    return kernix::testing::EngineFault{.method = method, .times = 0, .answer = grpc::Status(code, "no")};
  };
  const std::vector<kernix::testing::EngineFault> faults = {
      {.method = "BatchReadBlobs", .times = 0, .change = other_bytes},
      {.method = "BatchReadBlobs", .times = 0, .change = nothing},
      {.method = "BatchReadBlobs", .times = 0, .hang = true},
      {.method = "GetActionResult", .times = 0, .hang = true},
      fails("GetActionResult", grpc::StatusCode::UNAVAILABLE),
      fails("GetActionResult", grpc::StatusCode::RESOURCE_EXHAUSTED),
      fails("GetActionResult", grpc::StatusCode::UNAUTHENTICATED),
      fails("BatchReadBlobs", grpc::StatusCode::NOT_FOUND),
      fails("BatchReadBlobs", grpc::StatusCode::DATA_LOSS)};
  for (const auto& fault : faults) {
    FaultProxy proxy(engine_->address());
    proxy.Inject(fault);
    Node node;
    node.Share({.address = proxy.address(), .timeout = Duration(fault.hang ? 500 : 60'000)}, {}, {.write = false});
    const auto result = node.Load(request);
    ASSERT_THAT(result, IsOk()) << fault.method;
    EXPECT_FALSE(result->cache_hit());
    EXPECT_TRUE(node.Artifact(*result) == first.Artifact(*built));
    EXPECT_GT(proxy.Calls(fault.method), 0);
  }
}

TEST_F(SharingTest, AWriteThatTakesLongDelaysNoLoad) {
  FaultProxy proxy(engine_->address());
  std::promise<void> release;
  proxy.Inject(
      {.method = "FindMissingBlobs", .times = 0, .change = [go = release.get_future().share()](auto&) { go.wait(); }});
  const v1::LoadRequest request = Request();
  Node first;
  first.Share({.address = proxy.address()});
  first.Build(request);
  first.Build(Request());
  EXPECT_TRUE(first.Load(request)->cache_hit());
  EXPECT_GT(Sample(*first.upstream_cache, "kernix_upstream_waiting_bytes"), 0);
  release.set_value();
  first.StopSharing();
  Node second;
  second.Share(Engine());
  EXPECT_TRUE(second.Load(request)->from_upstream());
}

TEST_F(SharingTest, WhatIsTooMuchToWaitForTheEngineIsLostAndCounted) {
  FaultProxy proxy(engine_->address());
  std::promise<void> release;
  proxy.Inject(
      {.method = "FindMissingBlobs", .times = 0, .change = [go = release.get_future().share()](auto&) { go.wait(); }});
  Node node;
  node.Share({.address = proxy.address()}, {}, {.read = false, .write = true});
  const auto content = exec::MakeContent(std::string(4 << 20, 'x'));
  std::vector<std::pair<std::string, exec::Content>> files;
  for (uint64_t bytes = 0; bytes <= UpstreamCache::kMostWaitingBytes / 2; bytes += content->size()) {
    files.emplace_back(StrCat("file ", bytes), content);
  }
  for (const char* key : {"first", "second"}) node.upstream_cache->Keep(DigestOf(key), {}, files);
  EXPECT_EQ(Sample(*node.upstream_cache, "kernix_upstream_results_lost_total"), 1);
  EXPECT_EQ(Sample(*node.upstream_cache, "kernix_upstream_waiting_bytes"), files.size() * content->size());
  release.set_value();
}

grpc::Status Unauthenticated() { return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the token has expired"); }

TEST_F(SharingTest, AWriteThatCameWithAnExpiredTokenIsTriedAgainWithTheRenewedOne) {
  const v1::LoadRequest request = Request();
  const TempFolder folder;
  FaultProxy proxy(engine_->address());
  proxy.Inject({.method = "FindMissingBlobs", .times = 1, .answer = Unauthenticated()});
  Node first;
  first.Share({.address = proxy.address(), .token_file = folder.Write("token", "expired")});
  first.Build(request);
  Await("a write", [&] { return proxy.Calls("FindMissingBlobs") > 0; });
  folder.Write("token", "renewed");
  Await("the next try", [&] { return proxy.Calls("FindMissingBlobs") > 1; });
  EXPECT_EQ(Sample(*first.upstream_cache, "kernix_upstream_results_lost_total"), 0);
  first.StopSharing();
  EXPECT_THAT(proxy.LastMetadata(), Contains(Pair("authorization", "Bearer renewed")));

  Node second;
  second.Share(Engine());
  const auto taken = second.Load(request);
  ASSERT_THAT(taken, IsOk());
  EXPECT_TRUE(taken->from_upstream());
}

// Each call alone would be in time.
TEST_F(SharingTest, ASlowEngineCostsALoadOneTimeLimit) {
  const v1::LoadRequest request = Request();
  Node first;
  first.Share(Engine());
  const auto built = first.Load(request);
  ASSERT_THAT(built, IsOk());
  first.StopSharing();

  remote::SteppedEnv env;
  FaultProxy proxy(engine_->address());
  for (const char* method : {"GetActionResult", "BatchReadBlobs", "UpdateActionResult"}) {
    proxy.Inject({.method = method, .times = 0, .change = [&](auto&) { env.AdvanceClock(Duration(6'000)); }});
  }
  const auto upstream = remote::OpenUpstream(env, {.address = proxy.address(), .timeout = Duration(10'000)});
  remote::SharedResults results(*upstream, {});
  remote::BuildClaims claims(*upstream, "node");
  UpstreamCache cache(env, KnownToolchains().digests(), results, claims, {.write = true, .build_once = true});
  EXPECT_FALSE(cache.Find({.key = Digest::FromRaw(built->key()).value(),
                           .toolchain = KnownToolchains().Resolve(request.toolchain(), request.language()).value(),
                           .effort = Effort::kBuild}));
  EXPECT_EQ(proxy.Calls("GetActionResult"), 1);
  EXPECT_EQ(proxy.Calls("BatchReadBlobs"), 1);
  EXPECT_EQ(proxy.Calls("UpdateActionResult"), 0);
}

// Lets one query for a result take longer than the time limit, though each of its calls is in time.
void SlowDownOneQuery(FaultProxy& proxy, ChangingEnv& env) {
  for (const char* method : {"GetActionResult", "BatchReadBlobs"}) {
    proxy.Inject({.method = method, .change = [&](auto&) { env.AdvanceClock(Duration(6'000)); }});
  }
}

TEST_F(SharingTest, ALoadThatHasWaitedOneTimeLimitAsksForNoStep) {
  const v1::LoadRequest request = WithSharedStep(Request());
  Node first;
  first.Share(Engine());
  first.Build(request);
  first.StopSharing();

  FaultProxy proxy(engine_->address());
  Node second;
  second.Share({.address = proxy.address(), .timeout = Duration(10'000)}, {}, {.write = false});
  SlowDownOneQuery(proxy, second.env);
  second.Build(request);
  EXPECT_EQ(proxy.Calls("GetActionResult"), 1);
  EXPECT_EQ(second.Steps("upstream"), 0);
  EXPECT_EQ(second.Steps("run"), 1);
}

// Compiles as nvcc does; returns how often the engine is asked for a step of that. `spent`: the load has waited for the
// engine as long as it may.
int QuestionsOfPhases(const std::string& engine, bool spent) {
  static constexpr char kDryRun[] = R"(#$ g++ -E -D__CUDA_ARCH__=900 u.cu -o k/u.cpp1.ii
#$ g++ -E u.cu -o k/u.cpp4.ii
#$ cudafe++ --gen_c_file_name k/u.cudafe1.cpp --stub_file_name u.stub.c k/u.cpp4.ii
#$ cicc -arch compute_90 --stub_file_name k/u.stub.c k/u.cpp1.ii -o k/u.ptx
#$ ptxas -arch=sm_90 k/u.ptx -o k/u.cubin
#$ fatbinary --image3=kind=elf,file=k/u.cubin --embedded-fatbin=k/u.fatbin.c
#$ g++ -c k/u.cudafe1.cpp -o u.o
)";
  FaultProxy proxy(engine);
  const ScratchDirectory folder;
  Env& env = Env::Posix();
  const auto upstream = remote::OpenUpstream(env, {.address = proxy.address()});
  remote::SharedResults results(*upstream, {});
  remote::BuildClaims claims(*upstream, "node");
  toolchain::FileDigests digests(env);
  UpstreamCache shared(env, digests, results, claims, {});
  StepCache cache(env, digests, folder / "steps", 1 << 20, &shared);
  auto executor = exec::MakePoolExecutor(
      env,
      [](const exec::Action& action, exec::ActionObserver*, Cancellation*) -> absl::StatusOr<exec::ActionResult> {
        exec::ActionResult result;
        if (action.step == "dry run") result.output = kDryRun;
        for (const std::string& path : action.outputs) {
          result.outputs[path] = exec::MakeContent("made:\n");
        }
        return result;
      },
      1, 0);
  StepRunner runner(env, *executor, cache);
  Step compile{.kind = StepKind::kCudaCompile, .object = "u.o", .nvcc = NvccCompile{.dependencies = "u.d"}};
  compile.action.step = "compile";
  compile.action.argv = {"cuda/bin/nvcc", "-c", "-ccbin", "g++"};
  compile.action.outputs = {"u.o", "u.d"};
  EXPECT_THAT(runner.RunStep(compile, {.askers = exec::OneAsker(UserId{1000}),
                                       .toolchain = std::make_shared<toolchain::Toolchain>(),
                                       .budget = spent ? std::make_shared<UpstreamBudget>(env, Duration(0)) : nullptr}),
              IsOk());
  return proxy.Calls("GetActionResult");
}

TEST_F(SharingTest, NvccsPhasesHaveTheTimeLimitOfTheirLoad) {
  EXPECT_GE(QuestionsOfPhases(engine_->address(), /*spent=*/false), 4);
  EXPECT_EQ(QuestionsOfPhases(engine_->address(), /*spent=*/true), 0);
}

// A node that waits for another one's build does not wait for the engine.
TEST_F(SharingTest, AWaitForAnotherNodesBuildTakesNothingFromTheTimeLimit) {
  const v1::LoadRequest request = Request();
  const Digest key = DigestOf("built elsewhere");
  const toolchain::ToolchainPtr toolchain = *KnownToolchains().Resolve(request.toolchain(), request.language());
  ChangingEnv env;
  FaultProxy proxy(engine_->address());
  const auto upstream = remote::OpenUpstream(env, {.address = proxy.address(), .timeout = Duration(15'000)});
  remote::SharedResults results(*upstream, {});
  remote::BuildClaims others(*upstream, "another node"), own(*upstream, "this node");
  ASSERT_THAT(others.Write(key, 0, remote::ClaimState::kBuilding, {}), IsOk());
  UpstreamCache cache(env, KnownToolchains().digests(), results, own, {.write = true, .build_once = true});
  proxy.Inject({.method = "GetActionResult", .times = 0, .change = [&](auto&) {
                  env.AdvanceClock(Duration(3'000));  // of each reading of the claim
                }});
  const UpstreamBudgetPtr budget = cache.NewBudget();
  // Until nothing more is heard of it.
  (void)cache.Find({.key = key, .toolchain = toolchain, .effort = Effort::kBuild, .budget = budget});
  EXPECT_GE(proxy.Calls("GetActionResult"), 4);
  EXPECT_FALSE(UpstreamBudget::Query(*budget).IsOver());
  cache.EndBuild(key, remote::ClaimState::kLeft);
}

TEST_F(SharingTest, ALoadThatIsCancelledWaitsForNoEngine) {
  FaultProxy proxy(engine_->address());
  proxy.Inject({.method = "GetActionResult", .times = 0, .hang = true});
  Node node;
  node.Share({.address = proxy.address(), .timeout = std::chrono::hours(1)}, {}, {.write = false});
  const auto cancellation = std::make_shared<Cancellation>();
  RecordingObserver observer;
  std::thread canceller([&] {
    Await("the load to ask", [&] { return node.Stats().misses() == 1; });
    cancellation->Cancel();
  });
  const auto result = node.builder->Load(Request(), UserId{1000}, observer, cancellation);
  canceller.join();
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::CANCELLED);
  node.StopSharing();
  EXPECT_EQ(node.Stats().builds(), 0u);
}

}  // namespace
}  // namespace kernix::build
