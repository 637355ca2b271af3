// SPDX-License-Identifier: Apache-2.0
#include "daemon/build/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "daemon/base/strings.h"
#include "daemon/base/test_util.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;

// A plan reads no file, so these tools need not be there.
BuildRequest Request(v1::Language language, int architectures = 0) {
  auto toolchain = std::make_shared<toolchain::Toolchain>();
  toolchain->host.path = "/bin/g++";
  BuildRequest request;
  request.language = language;
  request.units = {{language, {{"kernel", "void f(BE::Tensor y) {}\n"}}, {}}};
  if (language == v1::LANGUAGE_CUDA) toolchain->cuda.emplace().nvcc = "/cuda/bin/nvcc";
  for (int i = 0; i < architectures; ++i) request.architectures.push_back(StrCat("sm_", 80 + i));
  request.toolchain = std::move(toolchain);
  return request;
}

Plan MustPlan(const BuildRequest& request, const PlanLimits& limits = {}, const HeaderContents& contents = {}) {
  absl::StatusOr<Plan> plan = MakePlan(request, contents, limits);
  EXPECT_THAT(plan, IsOk());
  return plan.ok() ? *std::move(plan) : Plan();
}

constexpr uint64_t kGiB = 1ull << 30;

// How many threads nvcc is given, which the pool has to be told of.
int Threads(const BuildRequest& request, const PlanLimits& limits) {
  const Plan plan = MustPlan(request, limits);
  if (plan.steps.empty()) return 0;
  const exec::Action& compile = plan.steps[0].action;
  const auto is_threads = [](const std::string& word) { return word.starts_with("--threads="); };
  const auto flag = std::find_if(compile.argv.begin(), compile.argv.end(), is_threads);
  EXPECT_EQ(flag == compile.argv.end() ? 1 : std::stoi(flag->substr(flag->find('=') + 1)), compile.jobs);
  EXPECT_EQ(compile.memory_estimate_bytes, kGiB * compile.jobs);
  return compile.jobs;
}

TEST(PlanTest, NvccHasAThreadForEachArchitectureWithinJobsAndMemory) {
  const BuildRequest five = Request(v1::LANGUAGE_CUDA, 5);
  EXPECT_EQ(Threads(five, {.max_jobs = 8}), 5);
  EXPECT_EQ(Threads(five, {.max_jobs = 3}), 3);
  EXPECT_EQ(Threads(five, {.max_jobs = 8, .max_memory_bytes = 20 * kGiB}), 5);
  EXPECT_EQ(Threads(five, {.max_jobs = 8, .max_memory_bytes = 3 * kGiB - 1}), 2);
  EXPECT_EQ(Threads(five, {.max_jobs = 8, .max_memory_bytes = kGiB / 2}), 1);
  EXPECT_EQ(Threads(Request(v1::LANGUAGE_CUDA, 1), {.max_jobs = 8}), 1);
  BuildRequest flag = five;
  flag.nvcc_threads = 2;
  EXPECT_EQ(Threads(flag, {.max_jobs = 8}), 2);
}

TEST(PlanTest, EveryStepSaysWhatItNeeds) {
  BuildRequest relocatable = Request(v1::LANGUAGE_CUDA, 1);
  relocatable.relocatable_device_code = true;
  for (const BuildRequest& request : {Request(v1::LANGUAGE_CPP), relocatable}) {
    for (const Step& step : MustPlan(request).steps) {
      EXPECT_GT(step.action.memory_estimate_bytes, 0u) << step.action.step;
      EXPECT_EQ(step.action.jobs, 1) << step.action.step;
    }
  }
}

// A root that headers climb out of has to be there, but nothing of ours stands where a header of the user does.
TEST(PlanTest, AMarkerOfARootIsNoHeaderOfTheUser) {
  BuildRequest request = Request(v1::LANGUAGE_CPP);
  const std::string text = "int kept;\n";
  const HeaderContents contents = {{DigestOf(text), std::make_shared<const std::string>(text)}};
  request.include_root_count = 1;
  request.root_climbs = {1};
  request.headers = {{0, "../up.h", DigestOf(text)}};
  const auto roots_files = [&] {
    std::vector<std::string> paths;
    const Plan plan = MustPlan(request, {}, contents);
    for (const exec::InputFile& file : plan.steps.at(0).action.inputs) {
      if (file.path.starts_with("inc/0/.up/")) paths.push_back(file.path);
    }
    return paths;
  };
  EXPECT_THAT(roots_files(), ElementsAre("inc/0/.up/.keep"));
  for (const char* path : {".keep", ".keep/in_folder.h", "other.h"}) {
    request.headers = {{0, "../up.h", DigestOf(text)}, {0, path, DigestOf(text)}};
    EXPECT_THAT(roots_files(), ElementsAre(StrCat("inc/0/.up/", path)));
  }
}

}  // namespace
}  // namespace kernix::build
