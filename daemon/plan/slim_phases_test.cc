// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/slim_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"

namespace kernix::build {
namespace {

using language::RuntimePart;
using language::RuntimeParts;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

Step Preprocess(const std::string& name, const std::vector<std::string>& words) {
  Step step;
  step.action.step = name;
  step.action.argv = {"g++", "-E", "-Iinc/0", "-Itoolchain/cuda/include", "u/unit.cu", "-o", name};
  step.action.argv.insert(step.action.argv.end(), words.begin(), words.end());
  step.action.argv.insert(step.action.argv.end(), {"-MD", "-MF", name + ".d"});
  step.action.inputs = {exec::MakeInput("u/unit.cu", "text"), exec::MakeInput("kernix-macros/cuda_runtime.h", "text")};
  step.action.outputs = {name, name + ".d"};
  return step;
}

Phases TwoPasses() {
  Phases phases;
  phases.preprocess = {Preprocess("device.ii", {"-D__CUDA_ARCH__=900", "-D__CUDA_ARCH_LIST__=900"}),
                       Preprocess("host.ii", {"-D__CUDA_ARCH_LIST__=900"})};
  phases.host_pass = 1;
  phases.compile.emplace_back().action.argv = {"cicc", "device.ii"};
  phases.host_compile.action.argv = {"g++", "-c", "unit.cpp"};
  phases.unit = "u/unit.cu";
  phases.toolkit_headers = "-Itoolchain/cuda/include";
  return phases;
}

std::vector<std::string> Paths(const exec::Action& action) {
  std::vector<std::string> paths;
  for (const exec::InputFile& input : action.inputs) paths.push_back(input.path);
  return paths;
}

TEST(SlimPhasesTest, TheStandInComesJustBeforeTheToolkitsHeaders) {
  const Phases phases = WithStandIn(TwoPasses(), {0, 1}, RuntimeParts());
  for (const Step& step : phases.preprocess) {
    EXPECT_THAT(std::vector<std::string>(step.action.argv.begin() + 2, step.action.argv.begin() + 5),
                ElementsAre("-Iinc/0", "-Ikernix-slim", "-Itoolchain/cuda/include"));
    EXPECT_THAT(Paths(step.action), Contains("kernix-slim/cuda_runtime.h"));
  }
  EXPECT_THAT(phases.compile[0].action.argv, ElementsAre("cicc", "device.ii"));
  EXPECT_THAT(phases.host_compile.action.argv, Contains("-D__MATH_FUNCTIONS_H__"));
}

TEST(SlimPhasesTest, EachPassReadsTheStandInOrTheWholeHeader) {
  const Phases device = WithStandIn(TwoPasses(), {0}, RuntimeParts());
  EXPECT_THAT(device.preprocess[0].action.argv, Contains("-Ikernix-slim"));
  EXPECT_THAT(device.preprocess[1].action.argv, Not(Contains("-Ikernix-slim")));
  EXPECT_THAT(device.host_compile.action.argv, Not(Contains("-D__MATH_FUNCTIONS_H__")));
  EXPECT_THAT(WithStandIn(TwoPasses(), {1}, RuntimePart::kMaths).host_compile.action.argv,
              Not(Contains("-D__MATH_FUNCTIONS_H__")));
}

TEST(SlimPhasesTest, WhatDebuggersReadAndPlacesThatAreNotKnownTakeTheWholeHeader) {
  EXPECT_TRUE(MayTakeStandIn(TwoPasses()));
  Phases phases = TwoPasses();
  phases.shows_unused = true;
  EXPECT_FALSE(MayTakeStandIn(phases));
  phases = TwoPasses();
  phases.toolkit_headers = "";
  EXPECT_FALSE(MayTakeStandIn(phases));
  phases = TwoPasses();
  phases.preprocess[0].action.argv[3] = "-Iother/include";
  EXPECT_FALSE(MayTakeStandIn(phases));
}

TEST(SlimPhasesTest, ProbesPreprocessAnEmptyUnitWithoutTheUsersFiles) {
  const RuntimeProbes probes = ProbesFor(TwoPasses(), 0, RuntimeParts());
  EXPECT_THAT(Paths(probes.whole.step.action), ElementsAre("kernix-probe/probe.cu"));
  EXPECT_THAT(Paths(probes.slim.step.action), ElementsAre("kernix-probe/probe.cu", "kernix-slim/cuda_runtime.h"));
  EXPECT_NE(probes.whole.text, probes.slim.text);
  for (const RuntimeProbe* probe : {&probes.whole, &probes.slim}) {
    const exec::Action& action = probe->step.action;
    EXPECT_THAT(action.outputs, ElementsAre(probe->text, probe->dependencies));
    EXPECT_THAT(action.argv, IsSupersetOf({std::string("-dD"), std::string("-D__CUDA_ARCH__=900"), probe->text,
                                           probe->dependencies, std::string("kernix-probe/probe.cu")}));
    EXPECT_THAT(action.argv, Not(Contains(HasSubstr("__CUDA_ARCH_LIST__"))));
    EXPECT_THAT(action.argv, Not(Contains("u/unit.cu")));
    EXPECT_THAT(action.argv, Not(Contains("-Iinc/0")));
  }
}

TEST(SlimPhasesTest, ALessonIsAboutOnePassAndOneStandIn) {
  const auto key = [](const Phases& phases, size_t pass, RuntimeParts parts) {
    return LessonOf(ProbesFor(phases, pass, parts)).step.action.argv;
  };
  EXPECT_EQ(key(TwoPasses(), 0, RuntimeParts()), key(TwoPasses(), 0, RuntimeParts()));
  EXPECT_NE(key(TwoPasses(), 0, RuntimeParts()), key(TwoPasses(), 1, RuntimeParts()));
  EXPECT_NE(key(TwoPasses(), 0, RuntimeParts()), key(TwoPasses(), 0, RuntimePart::kMaths));
  Phases other = TwoPasses();
  other.unit = "kernix-unit/0-a.cu/unit.cu";
  other.preprocess[0].action.argv[4] = other.unit;
  other.preprocess[0].action.argv.emplace_back("-iquotekernix-macros");
  std::erase(other.preprocess[0].action.argv, "-D__CUDA_ARCH_LIST__=900");
  EXPECT_EQ(key(other, 0, RuntimeParts()), key(TwoPasses(), 0, RuntimeParts()));
  other.preprocess[0].action.argv.emplace_back("-std=c++20");
  EXPECT_NE(key(other, 0, RuntimeParts()), key(TwoPasses(), 0, RuntimeParts()));
}

}  // namespace
}  // namespace kernix::build
