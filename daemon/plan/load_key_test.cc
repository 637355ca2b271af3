// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/load_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>

#include "common/base/strings.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

// None of its files need to exist.
std::shared_ptr<toolchain::Toolchain> ToolchainIn(const std::string& folder, v1::Language language) {
  auto toolchain = std::make_shared<toolchain::Toolchain>();
  toolchain->host.path = folder + "/bin/g++";
  toolchain->host.system_include_directories = {folder + "/include"};
  toolchain->environment = {{"LC_ALL", "C"}, {"PATH", folder + "/bin:/usr/bin:/bin"}};
  toolchain->identity = DigestOf("identity");
  if (language != v1::LANGUAGE_CUDA) return toolchain;
  toolchain::CudaToolkit& cuda = toolchain->cuda.emplace();
  cuda.root = folder + "/cuda";
  cuda.nvcc = folder + "/cuda/bin/nvcc";
  cuda.include_directories = {folder + "/cuda/include", folder + "/more/include"};
  cuda.library_directories = {folder + "/cuda/lib64", folder + "/more/lib"};
  return toolchain;
}

language::FunctionSpec Function(const std::string& name) {
  language::FunctionSpec function;
  function.name = name;
  function.callee = name;
  return function;
}

BuildRequest Request(v1::Language language) {
  BuildRequest request;
  request.language = language;
  request.functions = {Function("f")};
  request.units = {{language, {{"kernel", "void f() {}\n"}}, request.functions, {{0, false}, {1, false}}}};
  if (language == v1::LANGUAGE_CUDA) request.architectures = {"sm_80"};
  request.include_root_count = 2;
  request.root_climbs = {0, 0};
  request.headers = {{0, "a.h", DigestOf("a"), 1}, {1, "b/c.h", DigestOf("c"), 1}};
  request.toolchain = ToolchainIn("/tools", language);
  return request;
}

Digest KeyOf(const BuildRequest& request, const PlanLimits& limits = {}) {
  const absl::StatusOr<Plan> plan = MakePlan(request, limits);
  EXPECT_THAT(plan, IsOk());
  return plan.ok() ? LoadKey(request, *plan) : Digest();
}

class LoadKeyTest : public ::testing::TestWithParam<v1::Language> {};

// What another machine's tools may have made must not pass for what this one's make.
TEST_P(LoadKeyTest, WorkersWithToolsOfTheirOwnChangeIt) {
  const BuildRequest request = Request(GetParam());
  const bool is_cuda = GetParam() == v1::LANGUAGE_CUDA;
  const Digest plain = KeyOf(request);
  const Digest workers = KeyOf(request, {.workers = {.name = "a"}});
  EXPECT_NE(workers, plain);
  EXPECT_NE(KeyOf(request, {.workers = {.name = "b"}}), workers);
  const auto device = [&](std::vector<std::string> shipped) {
    return KeyOf(request, {.workers = {"a", /*only_device_compiles=*/true, std::move(shipped)}});
  };
  EXPECT_EQ(device({}) == plain, !is_cuda);
  EXPECT_EQ(device({"/tools/cuda/bin"}) == plain, !is_cuda) << "not all of it travels";
  EXPECT_EQ(device({"/tools/cuda"}), plain);
  EXPECT_EQ(device({"/more", "/tools"}), plain);
  EXPECT_EQ(KeyOf(request, {.workers = {.name = "a", .shipped_folders = {"/tools/cuda"}}}), workers);
}

TEST_P(LoadKeyTest, EveryFieldChangesIt) {
  const BuildRequest base = Request(GetParam());
  std::map<Digest, std::string> keys = {{KeyOf(base), "nothing"}};
  const auto vary = [&](const std::string& what, const std::function<void(BuildRequest&)>& change) {
    BuildRequest request = base;
    change(request);
    const auto [at, is_new] = keys.emplace(KeyOf(request), what);
    EXPECT_TRUE(is_new) << "\"" << what << "\" has the key of \"" << at->second << "\"";
  };
  vary("label", [](BuildRequest& r) { r.units[0].sources[0].label += "x"; });
  vary("text", [](BuildRequest& r) { r.units[0].sources[0].text += " "; });
  vary("another source", [](BuildRequest& r) { r.units[0].sources.push_back({"b", ""}); });
  vary("another unit", [](BuildRequest& r) { r.units.push_back({v1::LANGUAGE_CPP, {{"b", ""}}, {}, {}}); });
  vary("function's name", [](BuildRequest& r) { r.functions[0].name += "x"; });
  vary("exported function", [](BuildRequest& r) { r.units[0].functions.push_back(Function("g")); });
  vary("token", [](BuildRequest& r) { r.functions[0].parameters.push_back({language::ParameterKind::kStream}); });
  vary("definition", [](BuildRequest& r) { r.definitions = {"#define X 1"}; });
  vary("host flag", [](BuildRequest& r) { r.host_flags = {"-g"}; });
  vary("two host flags", [](BuildRequest& r) { r.host_flags = {"-g", "-g"}; });
  vary("link flag", [](BuildRequest& r) { r.link_flags = {"-s"}; });
  vary("optimization", [](BuildRequest& r) { r.optimization_level = 2; });
  vary("graph", [](BuildRequest& r) { r.allow_cuda_graph = false; });
  vary("flag file", [](BuildRequest& r) { r.flag_files = {{"", "/a", DigestOf("1")}}; });
  vary("flag file's content", [](BuildRequest& r) { r.flag_files = {{"", "/a", DigestOf("2")}}; });
  vary("staged flag file", [](BuildRequest& r) { r.flag_files = {{"flag-files/0/a", "/a", DigestOf("1")}}; });
  vary("staged flag file's content", [](BuildRequest& r) { r.flag_files = {{"flag-files/0/a", "/a", DigestOf("2")}}; });
  vary("staged flag file's place", [](BuildRequest& r) { r.flag_files = {{"flag-files/1/a", "/a", DigestOf("1")}}; });
  vary("order of searched roots", [](BuildRequest& r) { r.units[0].roots = {{1, false}, {0, false}}; });
  vary("a root's number", [](BuildRequest& r) { r.units[0].roots = {{0, false}, {0, false}}; });
  vary("one root less", [](BuildRequest& r) { r.units[0].roots.pop_back(); });
  vary("quoted root", [](BuildRequest& r) { r.units[0].roots[0].only_quoted = true; });
  vary("header's root", [](BuildRequest& r) { r.headers[0].include_root = 1; });
  vary("header's path", [](BuildRequest& r) { r.headers[0].path = "b.h"; });
  vary("header's folder", [](BuildRequest& r) { r.headers[1].path = "d/c.h"; });
  vary("header's content", [](BuildRequest& r) { r.headers[0].digest = DigestOf("b"); });
  vary("one header less", [](BuildRequest& r) { r.headers.pop_back(); });
  vary("no header", [](BuildRequest& r) { r.headers.clear(); });
  vary("toolchain", [](BuildRequest& r) {
    auto other = std::make_shared<toolchain::Toolchain>(*r.toolchain);
    other->identity = DigestOf("other");
    r.toolchain = other;
  });
  vary("variable", [](BuildRequest& r) {
    auto other = std::make_shared<toolchain::Toolchain>(*r.toolchain);
    other->environment["SOURCE_DATE_EPOCH"] = "1";
    r.toolchain = other;
  });
  if (GetParam() != v1::LANGUAGE_CUDA) return;
  vary("keep", [](BuildRequest& r) { r.keep = true; });
  vary("fast math", [](BuildRequest& r) { r.use_fast_math = true; });
  vary("nvcc flag", [](BuildRequest& r) { r.nvcc_flags = {"-g"}; });
  vary("relocatable device code", [](BuildRequest& r) { r.relocatable_device_code = true; });
  vary("architecture", [](BuildRequest& r) { r.architectures = {"sm_90"}; });
  vary("two architectures", [](BuildRequest& r) { r.architectures = {"sm_80", "sm_90"}; });
}

TEST_P(LoadKeyTest, PlacesAndLimitsDoNotChangeIt) {
  BuildRequest request = Request(GetParam());
  request.flag_files = {{"flag-files/0/a", "/a", DigestOf("1")}};
  const Digest key = KeyOf(request);
  BuildRequest moved = request;
  moved.toolchain = ToolchainIn("/some/where", GetParam());
  moved.flag_files[0].path = "/b";
  EXPECT_EQ(KeyOf(moved), key);
  auto renamed = ToolchainIn("/usr", GetParam());
  renamed->host.path = "/usr/bin/c++";
  moved.toolchain = renamed;
  EXPECT_EQ(KeyOf(moved), key);
  request.architectures.resize(request.architectures.empty() ? 0 : 2, "sm_90");
  EXPECT_EQ(KeyOf(request, {.step_timeout = std::chrono::seconds(1)}), KeyOf(request));
}

TEST_P(LoadKeyTest, TheMemoOfIncludeRootsDoesNotChangeIt) {
  const BuildRequest request = Request(GetParam());
  BuildRequest other = request;
  other.headers[0].digest = DigestOf("b");
  for (const BuildRequest* asked : std::initializer_list<const BuildRequest*>{&request, &other, &request}) {
    const absl::StatusOr<Plan> plan = MakePlan(*asked, {});
    ASSERT_THAT(plan, IsOk());
    EXPECT_EQ(LoadKey(*asked, *plan), KeyOf(*asked));
  }
}

// Everything that the daemon adds to a build is an input, so the key covers it.
TEST_P(LoadKeyTest, OurHeadersAndTheTextThatIsCompiledAreInputs) {
  const BuildRequest request = Request(GetParam());
  absl::StatusOr<Plan> plan = MakePlan(request, {});
  ASSERT_THAT(plan, IsOk());
  const Digest key = LoadKey(request, *plan);
  const auto expect_counts = [&](exec::BlobDigest& digest, const std::string& path) {
    const exec::BlobDigest before = std::exchange(digest, exec::BlobDigestOf("something else"));
    EXPECT_NE(LoadKey(request, *plan), key) << path;
    digest = before;
  };
  std::vector<exec::InputFile>& inputs = plan->steps.front().action.inputs;
  ASSERT_GE(inputs.size(), 3u);  // unit, prologue, source
  for (exec::InputFile& input : inputs) expect_counts(input.digest, input.path);
  ASSERT_EQ(plan->trees->size(), 3u);  // our headers and two include roots
  EXPECT_EQ(plan->trees->front().path, "kernix");
  for (exec::MountedTree& tree : *plan->trees) expect_counts(tree.digest, tree.path);
}

INSTANTIATE_TEST_SUITE_P(Languages, LoadKeyTest, ::testing::Values(v1::LANGUAGE_CPP, v1::LANGUAGE_CUDA),
                         [](const auto& language) { return language.param == v1::LANGUAGE_CUDA ? "Cuda" : "Cpp"; });

}  // namespace
}  // namespace kernix::build
