// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/step_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "tests/support/await.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kDryRun[] = R"(#$ g++ -E -D__CUDA_ARCH__=900 u.cu -o k/u.cpp1.ii
#$ g++ -E u.cu -o k/u.cpp4.ii
#$ cudafe++ --gen_c_file_name k/u.cudafe1.cpp --stub_file_name u.stub.c k/u.cpp4.ii
#$ cicc -arch compute_90 --stub_file_name k/u.stub.c k/u.cpp1.ii -o k/u.ptx
#$ ptxas -arch=sm_90 k/u.ptx -o k/u.cubin
#$ fatbinary --image3=kind=elf,file=k/u.cubin --embedded-fatbin=k/u.fatbin.c
#$ g++ -c k/u.cudafe1.cpp -o u.o
)";

// Runs each command at once, of one at a time. Each output holds "target: " and the step's name.
class ScriptedExecutor : public exec::Executor {
 public:
  exec::ActionEnd Run(const exec::Action& action, const exec::AskersPtr&, exec::ActionObserver* observer,
                      const CancellationPtr& cancellation) override {
    ran.push_back(action.step);
    for (const exec::InputFile& input : action.inputs) read[action.step].emplace_back(*input.content);
    if (observer != nullptr) observer->OnStarted(action);
    if (const auto end = ends.find(action.step); end != ends.end()) return end->second;
    if (cancellation->cancelled()) return MakeError(v1::ErrorDetail::CANCELLED, "cancelled");
    exec::ActionResult result;
    result.exit_code = failing.contains(action.step) ? 1 : 0;
    if (const auto text = prints.find(action.step); text != prints.end()) result.output = text->second;
    for (const std::string& path : action.outputs) {
      result.outputs[path] =
          exec::MakeContent(StrCat(lines_above, "target: ", absl::StrReplaceAll(action.step, {{" ", "-"}}), "\n"));
    }
    return result;
  }
  exec::ExecutorLoad load() const override { return {}; }

  std::vector<std::string> ran;
  std::map<std::string, std::vector<std::string>> read;  // texts of inputs, by step
  std::set<std::string> failing;
  std::map<std::string, std::string> prints = {{"dry run", kDryRun}};
  std::map<std::string, absl::Status> ends;
  std::string lines_above;  // in each output
};

class Watcher : public exec::ActionObserver {
 public:
  void OnStarted(const exec::Action& action) override {
    const MutexLock lock(mutex_);
    started.push_back(action.step);
  }
  void OnOutput(std::string_view text) override { output += text; }
  std::vector<std::string> started;
  std::string output;

 private:
  Mutex mutex_;
};

// Names and ways of the steps that have ended, in the order in which they began.
std::vector<std::pair<std::string, v1::TracedStep::How>> Ended(const TraceRecorder& trace) {
  std::vector<std::pair<std::string, v1::TracedStep::How>> ended;
  const v1::BuildTrace read = trace.Trace();
  for (const v1::TracedStep& step : read.step()) ended.emplace_back(step.name(), step.how());
  return ended;
}

class StepRunnerTest : public ::testing::Test {
 protected:
  static Step Compile() {
    Step step;
    step.action.step = "compile";
    step.action.argv = {"cuda/bin/nvcc", "-c", "-ccbin", "g++"};
    step.action.outputs = {"u.o", "u.d"};
    step.object = "u.o";
    step.kind = StepKind::kCudaCompile;
    step.nvcc = NvccCompile{.dependencies = "u.d"};
    return step;
  }

  absl::StatusOr<exec::ActionResult> Run(const Step& step) {
    const auto one_at_a_time = std::make_shared<exec::Askers>(exec::Asker{.user = UserId{7}, .max_parallel = 1});
    return runner_.RunStep(step, {.askers = one_at_a_time,
                                  .toolchain = toolchain_,
                                  .mode = mode_,
                                  .outputs = outputs_,
                                  .observer = &watcher_,
                                  .trace = &trace_,
                                  .cancellation = cancellation_});
  }

  std::string Metrics() {
    MetricsRegistry registry;
    runner_.Register(registry);
    return registry.Text();
  }

  toolchain::ToolchainPtr toolchain_;
  HeldOutputsPtr outputs_;
  CompileMode mode_ = CompileMode::kFast;
  ScriptedExecutor executor_;
  const ScratchDirectory scratch_;
  toolchain::FileDigests digests_{Env::Posix()};
  StepCache cache_{Env::Posix(), digests_, scratch_ / "steps", 1 << 20};
  StepRunner runner_{Env::Posix(), executor_, cache_};
  CancellationPtr cancellation_ = std::make_shared<Cancellation>();
  Watcher watcher_;
  TraceRecorder trace_{Env::Posix()};
};

TEST_F(StepRunnerTest, ACompileRunsAsItsPhases) {
  executor_.prints["cicc compute_90"] = "u.cu(1): warning: device\n";
  executor_.prints["cudafe++ host"] = "u.cu(1): warning: host\n";
  const auto result = Run(Compile());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(*result->outputs.at("u.o"), "target: host-compile\n");
  // One rule of both passes' files.
  EXPECT_THAT(*result->outputs.at("u.d"), HasSubstr("preprocess-host"));
  EXPECT_THAT(*result->outputs.at("u.d"), HasSubstr("preprocess-compute_90"));
  EXPECT_EQ(result->output, "u.cu(1): warning: host\nu.cu(1): warning: device\n");
  EXPECT_EQ(watcher_.output, result->output);
  EXPECT_THAT(watcher_.started, Contains("ptxas sm_90"));
  EXPECT_THAT(executor_.ran, Not(Contains("compile")));
  EXPECT_THAT(Metrics(), HasSubstr("kernix_nvcc_compiles_total{how=\"phases\"} 1"));
}

TEST_F(StepRunnerTest, NvccIsAskedOnceForTheSameFlags) {
  ASSERT_TRUE(Run(Compile()).ok());
  executor_.ran.clear();
  ASSERT_TRUE(Run(Compile()).ok());
  EXPECT_THAT(executor_.ran, Not(Contains("dry run")));
  Step other = Compile();
  other.action.argv.push_back("-lineinfo");
  ASSERT_TRUE(Run(other).ok());
  EXPECT_THAT(executor_.ran, Contains("dry run"));
}

TEST_F(StepRunnerTest, AnswersOfAnNvccThatWasReplacedAreNotKept) {
  toolchain::Toolchain toolchain;
  const std::string nvcc = scratch_ / "nvcc";
  ASSERT_THAT(Env::Posix().WriteFile(nvcc, "old", 0755), IsOk());
  ASSERT_THAT(Watch(Env::Posix(), nvcc, toolchain.files), IsOk());
  toolchain_ = std::make_shared<const toolchain::Toolchain>(toolchain);
  ASSERT_THAT(Env::Posix().WriteFile(nvcc, "newer", 0755), IsOk());
  for (int i = 0; i < 2; ++i) {
    executor_.ran.clear();
    ASSERT_TRUE(Run(Compile()).ok());
    EXPECT_THAT(executor_.ran, Contains("dry run"));
  }
}

TEST_F(StepRunnerTest, AFailedPhaseGivesWhatTheWholeCallSays) {
  executor_.failing = {"cicc compute_90", "compile"};
  executor_.prints["cicc compute_90"] = "some words of a phase\n";
  executor_.prints["compile"] = "u.cu(1): error: no\n";
  const auto result = Run(Compile());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 1);
  EXPECT_EQ(result->output, "u.cu(1): error: no\n");
  EXPECT_EQ(watcher_.output, "");  // the executor of this test does not stream
  EXPECT_EQ(executor_.ran.back(), "compile");
  EXPECT_THAT(Metrics(), HasSubstr("{how=\"whole_after_failure\"} 1"));
}

TEST_F(StepRunnerTest, WhatAPhaseSaysOfAnErrorIsTheMessage) {
  for (const char* phase :
       {"preprocess compute_90", "preprocess host", "cudafe++ host", "cicc compute_90", "host compile"}) {
    executor_.failing = {phase, "compile"};
    for (const char* said :
         {"u.cu(1): error: no\n", "u.cu(1): error #7-D: no\n", "u.cu:1:2: error: no\n", "u.cu:1: Error: no\n",
          "toolchain/cuda/x.h(1): error: no\n          detected during instantiation of \"T f(T)\" at line 7\n"}) {
      executor_.ran.clear();
      executor_.prints[phase] = said;
      const auto result = Run(Compile());
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->exit_code, 1);
      EXPECT_EQ(result->output, said);
      EXPECT_THAT(executor_.ran, Not(Contains("compile"))) << phase << said;
    }
    for (const char* said : {"", "Segmentation fault\n", "error: no\n"}) {
      executor_.ran.clear();
      executor_.prints[phase] = said;
      ASSERT_TRUE(Run(Compile()).ok());
      EXPECT_THAT(executor_.ran, Contains("compile")) << phase << said;
    }
    executor_.prints.erase(phase);
  }
}

TEST_F(StepRunnerTest, WhatPhasesHavePrintedBeforeAnErrorStandsBeforeIt) {
  executor_.prints["cudafe++ host"] = "u.cu(1): warning: host\n";
  executor_.prints["cicc compute_90"] = "u.cu(1): warning: device\n";
  executor_.failing = {"host compile", "compile"};
  executor_.prints["host compile"] = "u.cu:1:1: error: no\n";
  const auto result = Run(Compile());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "u.cu(1): warning: host\nu.cu(1): warning: device\nu.cu:1:1: error: no\n");
  EXPECT_EQ(watcher_.output, result->output);
  EXPECT_THAT(executor_.ran, Not(Contains("compile")));
}

TEST_F(StepRunnerTest, ADryRunThatIsNotUnderstoodGivesOneWholeCall) {
  executor_.prints["dry run"] = "nvcc warning : something new\n";
  ASSERT_TRUE(Run(Compile()).ok());
  EXPECT_THAT(executor_.ran, ElementsAre("dry run", "compile"));
  EXPECT_THAT(Metrics(), HasSubstr("{how=\"whole_not_understood\"} 1"));
}

TEST_F(StepRunnerTest, ACompileAnewRunsEachPhaseAgainAndTakesTheWholeHeader) {
  toolchain_ = std::make_shared<const toolchain::Toolchain>();
  ASSERT_TRUE(Run(Compile()).ok());
  const std::vector<std::string> on_a_new_store = std::exchange(executor_.ran, {});
  mode_ = CompileMode::kAnew;
  for (int i = 0; i < 2; ++i) {
    executor_.ran.clear();
    ASSERT_TRUE(Run(Compile()).ok());
    // The dry run tells what nvcc is, which has not changed.
    EXPECT_THAT(executor_.ran, testing::UnorderedElementsAreArray(on_a_new_store.begin() + 1, on_a_new_store.end()));
  }
  EXPECT_THAT(Metrics(), HasSubstr("kernix_cuda_runtime_headers_total{how=\"whole_forced\"} 2"));
}

TEST_F(StepRunnerTest, AWholeCompileIsOneCall) {
  mode_ = CompileMode::kWhole;
  ASSERT_TRUE(Run(Compile()).ok());
  EXPECT_THAT(executor_.ran, ElementsAre("compile"));
  EXPECT_THAT(Metrics(), HasSubstr("{how=\"whole_forced\"} 1"));
}

TEST_F(StepRunnerTest, ADryRunThatFailsGivesOneWholeCall) {
  executor_.failing = {"dry run"};
  ASSERT_TRUE(Run(Compile()).ok());
  EXPECT_THAT(executor_.ran, ElementsAre("dry run", "compile"));
}

TEST_F(StepRunnerTest, ALimitThatAPhaseExceedsIsNotTriedAgain) {
  executor_.ends["ptxas sm_90"] = MakeError(v1::ErrorDetail::RESOURCE, "too long");
  const auto result = Run(Compile());
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(executor_.ran, Not(Contains("compile")));
}

TEST_F(StepRunnerTest, WhatAllPhasesMakeIsBounded) {
  outputs_ =
      std::make_shared<HeldOutputs>(Env::Posix(), HeldOutputsOptions{.scratch_directory = scratch_.path(),
                                                                     .max_bytes = 60,
                                                                     .of_users = std::make_shared<exec::ByteQuota>(0),
                                                                     .askers = exec::OneAsker(UserId{7})});
  const auto result = Run(Compile());
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::RESOURCE) << "60 bytes are some two of the texts";
  EXPECT_THAT(executor_.ran, Not(Contains("compile")));
}

TEST_F(StepRunnerTest, ACancelledCompileEndsWithoutAWholeCall) {
  cancellation_->Cancel();
  const auto result = Run(Compile());
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::CANCELLED);
  EXPECT_THAT(executor_.ran, Not(Contains("compile")));
}

TEST_F(StepRunnerTest, DeviceCodeOfOtherLinesServesUnlessAWarningCouldShowThem) {
  toolchain_ = std::make_shared<const toolchain::Toolchain>();
  ASSERT_TRUE(Run(Compile()).ok());
  executor_.ran.clear();
  executor_.lines_above = "\n\n";
  ASSERT_TRUE(Run(Compile()).ok());
  EXPECT_THAT(executor_.ran, AllOf(Contains("host compile"), Not(Contains("cicc compute_90"))));

  executor_.ran.clear();
  executor_.lines_above = "\n\n\n";
  executor_.prints["host compile"] = "u.cu:7: warning\n";
  const auto result = Run(Compile());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "u.cu:7: warning\n");
  EXPECT_THAT(executor_.ran, Contains("cicc compute_90").Times(1));
  EXPECT_THAT(Metrics(), HasSubstr("kernix_nvcc_compiles_total{how=\"again_for_lines\"} 1\n"));
  EXPECT_THAT(Metrics(), HasSubstr("kernix_nvcc_compiles_total{how=\"phases\"} 3\n"));

  // Its own lines have been kept, too.
  executor_.ran.clear();
  ASSERT_TRUE(Run(Compile()).ok());
  EXPECT_THAT(executor_.ran, Not(Contains("cicc compute_90")));

  // An error could show them as well.
  executor_.ran.clear();
  executor_.lines_above = "\n\n\n\n";
  executor_.failing = {"host compile"};
  executor_.prints["host compile"] = "u.cu:8:1: error: no\n";
  const auto failed = Run(Compile());
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(failed->output, "u.cu:8:1: error: no\n");
  EXPECT_THAT(executor_.ran, AllOf(Contains("cicc compute_90").Times(1), Not(Contains("compile"))));
}

TEST_F(StepRunnerTest, WhatMayServeOthersGetsExactlyWhatItsKeyCovers) {
  toolchain_ = std::make_shared<const toolchain::Toolchain>();
  Step compile = Compile();
  compile.nvcc->host_bodies_count = true;
  executor_.lines_above = "# 700 \"u.cu\"\n\n";
  ASSERT_TRUE(Run(compile).ok());
  const std::string canonical = "# 1 \"u.cu\"\ntarget : preprocess - compute_90\n";
  EXPECT_THAT(executor_.read["cicc compute_90"], Contains(canonical));

  executor_.ran.clear();
  executor_.lines_above = "# 7 \"u.cu\"\n";
  ASSERT_TRUE(Run(compile).ok());
  EXPECT_THAT(executor_.ran, Not(Contains("cicc compute_90")));

  // A message may name lines: then all is done again with the unit's own.
  executor_.lines_above = "# 9 \"u.cu\"\n";
  executor_.prints["host compile"] = "u.cu:9: warning\n";
  ASSERT_TRUE(Run(compile).ok());
  EXPECT_THAT(executor_.read["cicc compute_90"], Contains(HasSubstr("# 9 ")));
}

TEST_F(StepRunnerTest, OtherStepsAreOneCommand) {
  Step step = Compile();
  step.kind = StepKind::kOther;
  ASSERT_TRUE(Run(step).ok());
  EXPECT_THAT(executor_.ran, ElementsAre("compile"));
}

TEST_F(StepRunnerTest, TellsTheTimesOfPhasesAndOfTheDryRun) {
  ASSERT_TRUE(Run(Compile()).ok());
  std::vector<std::string> names;
  const auto ended = Ended(trace_);
  for (const auto& [name, way] : ended) {
    EXPECT_EQ(way, v1::TracedStep::RUN) << name;
    names.push_back(name);
  }
  EXPECT_EQ(names, executor_.ran);
  EXPECT_EQ(names.front(), "dry run");
  EXPECT_THAT(watcher_.started, Not(Contains("dry run"))) << "users do not see it run";
}

TEST_F(StepRunnerTest, TellsTheTimesOfAFailedPhaseAndOfTheWholeCallAfterIt) {
  executor_.failing = {"cicc compute_90"};
  ASSERT_TRUE(Run(Compile()).ok());
  EXPECT_THAT(Ended(trace_), Contains(Pair("cicc compute_90", v1::TracedStep::RUN)));
  EXPECT_THAT(Ended(trace_).back(), Pair("compile", v1::TracedStep::RUN));
}

class ReusableStepTest : public ::testing::Test {
 protected:
  class Executor : public exec::Executor {
   public:
    exec::ActionEnd Run(const exec::Action& action, const exec::AskersPtr&, exec::ActionObserver* observer,
                        const CancellationPtr&) override {
      ++runs;
      observer->OnStarted(action);
      exec::ActionResult result;
      result.output = prints;
      result.outputs["out"] = exec::MakeContent("made");
      return result;
    }
    exec::ExecutorLoad load() const override { return {}; }

    int runs = 0;
    std::string prints;
  };

  void Run(CompileMode mode = CompileMode::kFast) {
    Step step;
    step.action.step = "step";
    step.action.argv = {"tool"};
    step.action.outputs = {"out"};
    step.reuse = Reuse();
    const exec::ActionEnd end = runner_.RunStep(
        step, {.askers = exec::OneAsker(UserId{7}), .toolchain = toolchain_, .mode = mode, .trace = &trace_});
    EXPECT_TRUE(end.ok());
  }

  std::string Metrics() {
    MetricsRegistry registry;
    runner_.Register(registry);
    return registry.Text();
  }

  Executor executor_;
  const ScratchDirectory scratch_;
  toolchain::FileDigests digests_{Env::Posix()};
  StepCache cache_{Env::Posix(), digests_, scratch_ / "steps", 1 << 20};
  StepRunner runner_{Env::Posix(), executor_, cache_};
  const toolchain::ToolchainPtr toolchain_ = std::make_shared<const toolchain::Toolchain>();
  TraceRecorder trace_{Env::Posix()};
};

TEST_F(ReusableStepTest, TellsHowEachLoadCameToTheResult) {
  for (int i = 0; i < 3; ++i) Run();
  EXPECT_EQ(executor_.runs, 1);
  EXPECT_THAT(Ended(trace_), ElementsAre(Pair("step", v1::TracedStep::RUN), Pair("step", v1::TracedStep::REUSED),
                                         Pair("step", v1::TracedStep::REUSED)));
  EXPECT_THAT(Metrics(), HasSubstr("kernix_reusable_steps_total{how=\"run\"} 1\n"));
  EXPECT_THAT(Metrics(), HasSubstr("kernix_reusable_steps_total{how=\"reused\"} 2\n"));
}

TEST_F(ReusableStepTest, MetricsTellThePoolOfLessonsApart) {
  Executor background;
  StepRunner runner(Env::Posix(), executor_, cache_, &background);
  MetricsRegistry registry;
  runner.Register(registry);
  EXPECT_THAT(registry.Text(), AllOf(HasSubstr("kernix_steps_running 0\n"), HasSubstr("kernix_steps_queued 0\n"),
                                     HasSubstr("kernix_queue_wait_seconds_count 0\n"),
                                     HasSubstr("kernix_steps_running{pool=\"lessons\"} 0\n"),
                                     HasSubstr("kernix_step_seconds_count{pool=\"lessons\",step=\"link\"} 0\n")));
}

TEST_F(ReusableStepTest, AStepThatRunsAnewTakesNothing) {
  Run();
  Run(CompileMode::kAnew);
  Run(CompileMode::kWhole);
  EXPECT_EQ(executor_.runs, 3);
}

TEST_F(ReusableStepTest, WordsAreEachLoadsOwn) {
  executor_.prints = "warning: x\n";
  Run();
  Run();
  EXPECT_EQ(executor_.runs, 2);
}

}  // namespace
}  // namespace kernix::build
