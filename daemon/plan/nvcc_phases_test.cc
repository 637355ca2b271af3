// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/nvcc_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_replace.h"
#include "common/base/strings.h"
#include "daemon/plan/plan.h"

namespace kernix::build {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

TEST(DryRunTest, CommandsAreWordsAsAShellWouldMakeThem) {
  const auto dry_run = ReadDryRun(
      "#$ _SPACE_= \n"
      "#$ PATH=cuda/bin/../nvvm/bin:cuda/bin:/usr/bin\n"
      "#$ CICC_PATH=cuda/bin/../nvvm/bin\n"
      "#$ CUDAFE_FLAGS=\n"
      "#$ g++ -E  -DX=1 \"-Icuda/include\" -include \"cuda_runtime.h\" \"unit.cu\" -o \"keep/unit.ii\" \n"
      "#$ -- Filter Dependencies -- > unit.d\n"
      "#$ \"$CICC_PATH/cicc\" -arch compute_90  \"keep/unit.ii\"\n"
      "#$ fatbinary --create=\"keep/unit.fatbin\" --cicc-cmdline=\"-ftz=0 -fmad=1 \" \"\"\n");
  ASSERT_TRUE(dry_run.has_value());
  EXPECT_EQ(dry_run->path, "cuda/bin/../nvvm/bin:cuda/bin:/usr/bin");
  EXPECT_THAT(dry_run->commands,
              ElementsAre(ElementsAre("g++", "-E", "-DX=1", "-Icuda/include", "-include", "cuda_runtime.h", "unit.cu",
                                      "-o", "keep/unit.ii"),
                          ElementsAre("cuda/bin/../nvvm/bin/cicc", "-arch", "compute_90", "keep/unit.ii"),
                          ElementsAre("fatbinary", "--create=keep/unit.fatbin", "--cicc-cmdline=-ftz=0 -fmad=1 ", "")));
}

TEST(DryRunTest, NoOutputHasNoCommands) {
  const auto dry_run = ReadDryRun("");
  ASSERT_TRUE(dry_run.has_value());
  EXPECT_THAT(dry_run->commands, IsEmpty());
}

// Each of these would be something else to a shell.
TEST(DryRunTest, LinesThatAreNotUnderstoodSaySo) {
  for (const char* line : {"nvcc warning : something is deprecated", "#$ g++ -E > out", "#$ g++ $UNKNOWN",
                           "#$ g++ `date`", "#$ g++ \"open", "#$ rm a; rm b", "#$ a | b", "#$ g++ 'x y'",
                           "#$ g++ a\\ b", "#$ (g++)", "#$ g++ *.cu", "#$ ", "#$", "$ g++"}) {
    EXPECT_FALSE(ReadDryRun(line).has_value()) << line;
  }
}

// As nvcc 13.5 prints it, without most flags.
constexpr char kOneArchitecture[] = R"(#$ CICC_PATH=toolchain/cuda/bin/../nvvm/bin
#$ PATH=toolchain/cuda/bin/../nvvm/bin:/usr/bin
#$ toolchain/host/g++ -D__CUDA_ARCH__=900 -E -x c++ -include "cuda_runtime.h" "u/unit.cu" -o "u/keep/unit.cpp1.ii" 
#$ toolchain/host/g++ -E -x c++ -include "cuda_runtime.h" "u/unit.cu" -o "u/keep/unit.cpp4.ii" 
#$ -- Filter Dependencies -- > u/unit.d
#$ cudafe++ --orig_src_file_name "u/unit.cu" --gen_c_file_name "u/keep/unit.cudafe1.cpp" --stub_file_name "unit.cudafe1.stub.c" --gen_module_id_file --module_id_file_name "u/keep/unit.module_id" "u/keep/unit.cpp4.ii" 
#$ "$CICC_PATH/cicc" -arch compute_90 --include_file_name "unit.fatbin.c" --module_id_file_name "u/keep/unit.module_id" --gen_c_file_name "u/keep/unit.cudafe1.c" --stub_file_name "u/keep/unit.cudafe1.stub.c" "u/keep/unit.cpp1.ii" -o "u/keep/unit.ptx"
#$ ptxas -arch=sm_90 -m64 "u/keep/unit.ptx" -o "u/keep/unit.sm_90.cubin" 
#$ fatbinary --create="u/keep/unit.fatbin" "--image3=kind=ptx,sm=90,file=u/keep/unit.ptx" "--image3=kind=elf,sm=90,file=u/keep/unit.sm_90.cubin" --embedded-fatbin="u/keep/unit.fatbin.c" 
#$ toolchain/host/g++ -D__CUDA_ARCH__=900 -c -x c++ -O3 -Xassembler --MD -Xassembler u/as.d -ffile-prefix-map=/usr/include=host "u/keep/unit.cudafe1.cpp" -o "u/unit.o" 
)";

// The next three are made from public logs, with the paths that an action has and without most flags. The logs' dry
// runs asked for no dependency file; the line for it is that of other releases.
//
// CUDA 12.1 (github.com/Sundaresan-G/NVCC-Debug-flag-comparison, dryrun_withoutDebugFlag.txt): the host's pass comes
// first, and cicc is named without a folder.
constexpr char kCuda12_1[] = R"(#$ _NVVM_BRANCH_=nvvm
#$ _SPACE_= 
#$ _HERE_=toolchain/cuda/bin
#$ _TARGET_DIR_=targets/x86_64-linux
#$ TOP=toolchain/cuda/bin/..
#$ NVVMIR_LIBRARY_DIR=toolchain/cuda/bin/../nvvm/libdevice
#$ LD_LIBRARY_PATH=toolchain/cuda/bin/../lib:
#$ PATH=toolchain/cuda/bin/../nvvm/bin:toolchain/cuda/bin:/usr/bin:/opt/other/nvvm/bin
#$ INCLUDES="-Itoolchain/cuda/bin/../targets/x86_64-linux/include"  
#$ LIBRARIES=  "-Ltoolchain/cuda/bin/../targets/x86_64-linux/lib/stubs" "-Ltoolchain/cuda/bin/../targets/x86_64-linux/lib"
#$ CUDAFE_FLAGS=
#$ PTXAS_FLAGS=
#$ toolchain/host/g++ -D__CUDA_ARCH_LIST__=700 -E -x c++ -D__CUDACC__ -D__NVCC__  "-Itoolchain/cuda/bin/../targets/x86_64-linux/include"    -D__CUDACC_VER_MAJOR__=12 -D__CUDACC_VER_MINOR__=1 -include "cuda_runtime.h" -m64 "u/unit.cu" -o "u/keep/unit.cpp4.ii" 
#$ -- Filter Dependencies -- > u/unit.d
#$ cudafe++ --c++17 --gnu_version=120200 --orig_src_file_name "u/unit.cu" --orig_src_path_name "u/unit.cu" --allow_managed  --m64 --parse_templates --gen_c_file_name "u/keep/unit.cudafe1.cpp" --stub_file_name "unit.cudafe1.stub.c" --gen_module_id_file --module_id_file_name "u/keep/unit.module_id" "u/keep/unit.cpp4.ii" 
#$ toolchain/host/g++ -D__CUDA_ARCH__=700 -D__CUDA_ARCH_LIST__=700 -E -x c++  -DCUDA_DOUBLE_MATH_FUNCTIONS -D__CUDACC__ -D__NVCC__  "-Itoolchain/cuda/bin/../targets/x86_64-linux/include"    -include "cuda_runtime.h" -m64 "u/unit.cu" -o "u/keep/unit.cpp1.ii" 
#$ cicc --c++17 --gnu_version=120200 --orig_src_file_name "u/unit.cu" --allow_managed   -arch compute_70 -m64 --no-version-ident -ftz=0 -fmad=1 --include_file_name "unit.fatbin.c" -tused --module_id_file_name "u/keep/unit.module_id" --gen_c_file_name "u/keep/unit.cudafe1.c" --stub_file_name "u/keep/unit.cudafe1.stub.c" --gen_device_file_name "u/keep/unit.cudafe1.gpu"  "u/keep/unit.cpp1.ii" -o "u/keep/unit.ptx"
#$ ptxas -arch=sm_70 -m64  "u/keep/unit.ptx"  -o "u/keep/unit.sm_70.cubin" 
#$ fatbinary --create="u/keep/unit.fatbin" -64 --cicc-cmdline="-ftz=0 -prec_div=1 -prec_sqrt=1 -fmad=1 " "--image3=kind=elf,sm=70,file=u/keep/unit.sm_70.cubin" "--image3=kind=ptx,sm=70,file=u/keep/unit.ptx" --embedded-fatbin="u/keep/unit.fatbin.c" 
#$ toolchain/host/g++ -D__CUDA_ARCH__=700 -D__CUDA_ARCH_LIST__=700 -c -x c++  -DCUDA_DOUBLE_MATH_FUNCTIONS "-Itoolchain/cuda/bin/../targets/x86_64-linux/include"   -m64 -Xassembler --MD -Xassembler u/as.d "u/keep/unit.cudafe1.cpp" -o "u/unit.o" 
)";

// CUDA 12.5 and 12.6, two architectures (github.com/mozilla/sccache, issue 2238 and pull request 2247): cicc has a
// variable, there may be a second one, and what cudafe++ writes is named after the last architecture.
constexpr char kCuda12_5[] = R"(#$ _NVVM_BRANCH_=nvvm
#$ CICC_PATH=toolchain/cuda/bin/../nvvm/bin
#$ CICC_NEXT_PATH=toolchain/cuda/bin/../nvvm-next/bin
#$ PATH=toolchain/cuda/bin/../nvvm/bin:toolchain/cuda/bin:/usr/bin
#$ toolchain/host/g++ -D__CUDA_ARCH_LIST__=600,700 -D__NV_LEGACY_LAUNCH -E -x c++ -D__CUDACC__ -D__NVCC__  -include "cuda_runtime.h" -m64 "u/unit.cu" -o "u/keep/unit.cpp4.ii" 
#$ -- Filter Dependencies -- > u/unit.d
#$ cudafe++ --c++17 --orig_src_file_name "u/unit.cu" --gen_c_file_name "u/keep/unit.compute_70.cudafe1.cpp" --stub_file_name "unit.compute_70.cudafe1.stub.c" --gen_module_id_file --module_id_file_name "u/keep/unit.module_id" "u/keep/unit.cpp4.ii" 
#$ toolchain/host/g++ -D__CUDA_ARCH__=600 -D__CUDA_ARCH_LIST__=600,700 -D__NV_LEGACY_LAUNCH -E -x c++  -include "cuda_runtime.h" -m64 "u/unit.cu" -o "u/keep/unit.compute_60.cpp1.ii" 
#$ "$CICC_PATH/cicc" --c++17 -arch compute_60 -m64 --include_file_name "unit.fatbin.c" -tused --module_id_file_name "u/keep/unit.module_id" --gen_c_file_name "u/keep/unit.compute_60.cudafe1.c" --stub_file_name "u/keep/unit.compute_60.cudafe1.stub.c" --gen_device_file_name "u/keep/unit.compute_60.cudafe1.gpu"  "u/keep/unit.compute_60.cpp1.ii" -o "u/keep/unit.compute_60.ptx"
#$ ptxas -arch=sm_60 -m64  "u/keep/unit.compute_60.ptx"  -o "u/keep/unit.compute_60.cubin" 
#$ toolchain/host/g++ -D__CUDA_ARCH__=700 -D__CUDA_ARCH_LIST__=600,700 -D__NV_LEGACY_LAUNCH -E -x c++  -include "cuda_runtime.h" -m64 "u/unit.cu" -o "u/keep/unit.compute_70.cpp1.ii" 
#$ "$CICC_PATH/cicc" --c++17 -arch compute_70 -m64 --include_file_name "unit.fatbin.c" -tused --module_id_file_name "u/keep/unit.module_id" --gen_c_file_name "u/keep/unit.compute_70.cudafe1.c" --stub_file_name "u/keep/unit.compute_70.cudafe1.stub.c" --gen_device_file_name "u/keep/unit.compute_70.cudafe1.gpu"  "u/keep/unit.compute_70.cpp1.ii" -o "u/keep/unit.compute_70.ptx"
#$ ptxas -arch=sm_70 -m64  "u/keep/unit.compute_70.ptx"  -o "u/keep/unit.compute_70.sm_70.cubin" 
#$ fatbinary --create="u/keep/unit.fatbin" -64 "--image3=kind=elf,sm=60,file=u/keep/unit.compute_60.cubin" "--image3=kind=ptx,sm=70,file=u/keep/unit.compute_70.ptx" "--image3=kind=elf,sm=70,file=u/keep/unit.compute_70.sm_70.cubin" --embedded-fatbin="u/keep/unit.fatbin.c" 
#$ toolchain/host/g++ -D__CUDA_ARCH__=700 -D__CUDA_ARCH_LIST__=600,700 -D__NV_LEGACY_LAUNCH -c -x c++  -Wno-psabi -m64 -Xassembler --MD -Xassembler u/as.d "u/keep/unit.compute_70.cudafe1.cpp" -o "u/unit.o" 
)";

// CUDA 12.9 (github.com/ikawrakow/ik_llama.cpp, issue 678): a warning may come first. The log ends at cudafe++; the
// other commands are those of 12.5.
constexpr char kCuda12_9Warning[] =
    "nvcc warning : Support for offline compilation for architectures prior to '<compute/sm/lto>_75' will be removed "
    "in "
    "a future release (Use -Wno-deprecated-gpu-targets to suppress warning).\n";

Step CompileStep() {
  Step step;
  step.action.step = "compile";
  step.action.argv = {"toolchain/cuda/bin/nvcc", "-c", "-ccbin", "{kernix-host-compiler}", "-Ikernix", "u/unit.cu"};
  step.action.local_paths = {{"{kernix-host-compiler}", "toolchain/host/g++"}, {"{kernix-host-0}", "/usr/include"}};
  step.action.tool_uses_shell = true;
  step.action.inputs = {exec::MakeInput("u/unit.cu", "text"), exec::MakeInput("u/keep/.keep", "")};
  step.action.outputs = {"u/unit.o", "u/unit.d", "u/as.d"};
  step.object = "u/unit.o";
  step.kind = StepKind::kCudaCompile;
  step.nvcc = NvccCompile{.dependencies = "u/unit.d"};
  return step;
}

std::map<std::string, Step> ByName(const Phases& phases) {
  std::map<std::string, Step> steps;
  for (const auto* part : {&phases.preprocess, &phases.compile}) {
    for (const Step& step : *part) steps[step.action.step] = step;
  }
  steps[phases.host_compile.action.step] = phases.host_compile;
  return steps;
}

TEST(NvccPhasesTest, TheHostCompileMayHaveItsOwnRankInABatch) {
  Step compile = CompileStep();
  compile.action.batch_rank = 5;
  compile.nvcc->host_batch_rank = 7;
  const auto phases = PhasesOf(compile, kOneArchitecture);
  ASSERT_TRUE(phases.has_value());
  for (const auto& [name, step] : ByName(*phases)) {
    EXPECT_EQ(step.action.batch_rank, name == "host compile" ? 7u : 5u) << name;
  }
}

// What needs no host compiler can run where there is none.
TEST(NvccPhasesTest, NvccsOwnProgramsAreDeviceCompiles) {
  Step compile = CompileStep();
  compile.action.work = exec::Work::kHostCompile;
  const auto phases = PhasesOf(compile, kOneArchitecture);
  ASSERT_TRUE(phases.has_value());
  for (const Step& step : phases->preprocess) EXPECT_EQ(step.action.work, exec::Work::kHostCompile) << step.action.step;
  EXPECT_EQ(phases->compile.size(), 4u);
  for (const Step& step : phases->compile) EXPECT_EQ(step.action.work, exec::Work::kDeviceCompile) << step.action.step;
  EXPECT_EQ(phases->host_compile.action.work, exec::Work::kHostCompile);
  EXPECT_EQ(DryRunOf(compile).work, exec::Work::kOther);
}

// Staging more costs more than some of these programs take, and an engine would get it all.
TEST(NvccPhasesTest, NvccsOwnProgramsGetWhatTheyRead) {
  Step compile = CompileStep();
  compile.action.links = {{"toolchain/cuda", "/opt/cuda"}, {"toolchain/host", "/usr/bin"}};
  compile.action.trees = std::make_shared<const std::vector<exec::MountedTree>>(1);
  const auto phases = PhasesOf(compile, kOneArchitecture);
  ASSERT_TRUE(phases.has_value());
  for (const Step& step : phases->compile) {
    const exec::Action& action = step.action;
    EXPECT_EQ(action.trees, nullptr) << action.step;
    ASSERT_EQ(action.links.size(), 1u) << action.step;
    EXPECT_EQ(action.links.front().path, "toolchain/cuda") << action.step;
    const bool names_module = action.step.starts_with("cudafe++") || action.step.starts_with("cicc");
    ASSERT_EQ(action.inputs.size(), names_module ? 1u : 0u) << action.step;
    for (const exec::InputFile& input : action.inputs) EXPECT_EQ(input.path, "u/keep/unit.module_id") << action.step;
  }
  EXPECT_EQ(phases->host_compile.action.links.size(), 2u);
  EXPECT_EQ(phases->host_compile.action.inputs.size(), compile.action.inputs.size()) << "it shows lines of the source";
}

TEST(NvccPhasesTest, EveryProgramIsAStepThatNeedsWhatItReads) {
  const auto phases = PhasesOf(CompileStep(), kOneArchitecture);
  ASSERT_TRUE(phases.has_value());
  EXPECT_THAT(phases->dependencies,
              ElementsAre("u/keep/unit.compute_90.cpp1.ii.d", "u/keep/unit.cpp4.ii.d", "u/unit.o.d"));
  EXPECT_THAT(phases->preprocessed, ElementsAre("u/keep/unit.compute_90.cpp1.ii", "u/keep/unit.cpp4.ii"));
  EXPECT_EQ(phases->host_text, "u/keep/unit.cudafe1.cpp");
  std::map<std::string, Step> steps = ByName(*phases);
  ASSERT_EQ(steps.size(), 7u);

  const Step& device = steps["preprocess compute_90"];
  EXPECT_THAT(device.inputs_from_steps, IsEmpty());
  EXPECT_THAT(device.action.outputs, ElementsAre("u/keep/unit.compute_90.cpp1.ii", "u/keep/unit.compute_90.cpp1.ii.d"));
  EXPECT_EQ(device.action.argv.front(), "{kernix-host-compiler}");
  EXPECT_THAT(steps["preprocess host"].action.outputs, ElementsAre("u/keep/unit.cpp4.ii", "u/keep/unit.cpp4.ii.d"));

  // Neither needs the other: both get the module id as an input.
  const Step& cudafe = steps["cudafe++ host"];
  EXPECT_EQ(cudafe.action.argv.front(), "toolchain/cuda/bin/cudafe++");
  EXPECT_THAT(cudafe.action.argv, Not(Contains("--gen_module_id_file")));
  EXPECT_THAT(cudafe.inputs_from_steps, ElementsAre("u/keep/unit.cpp4.ii"));
  const Step& cicc = steps["cicc compute_90"];
  EXPECT_EQ(cicc.action.argv.front(), "toolchain/cuda/bin/../nvvm/bin/cicc");
  EXPECT_THAT(cicc.inputs_from_steps, ElementsAre("u/keep/unit.compute_90.cpp1.ii"));
  EXPECT_THAT(cicc.action.outputs, ElementsAre("u/keep/unit.compute_90.ptx", "u/keep/unit.compute_90.cudafe1.stub.c"));
  for (const Step* step : {&cudafe, &cicc}) {
    EXPECT_EQ(step->action.inputs.back().path, "u/keep/unit.module_id");
    EXPECT_EQ(*step->action.inputs.back().content, *cicc.action.inputs.back().content);
  }

  EXPECT_THAT(steps["ptxas sm_90"].inputs_from_steps, ElementsAre("u/keep/unit.compute_90.ptx"));
  EXPECT_THAT(steps["fatbinary host"].inputs_from_steps,
              UnorderedElementsAre("u/keep/unit.compute_90.ptx", "u/keep/unit.compute_90.sm_90.cubin"));
  const Step& host = steps["host compile"];
  EXPECT_THAT(
      host.inputs_from_steps,
      UnorderedElementsAre("u/keep/unit.cudafe1.cpp", "u/keep/unit.compute_90.cudafe1.stub.c", "u/keep/unit.fatbin.c"));
  EXPECT_THAT(host.action.outputs, UnorderedElementsAre("u/unit.o", "u/unit.o.d", "u/as.d"));
  EXPECT_THAT(host.action.argv, Contains("-ffile-prefix-map={kernix-host-0}=host"));
  for (const auto& [name, step] : steps) {
    EXPECT_FALSE(step.action.tool_uses_shell) << name;
    EXPECT_FALSE(step.nvcc) << name;
  }
}

// The unit's text is an input of every phase, for the lines that a warning shows, but only preprocessing depends on it.
TEST(NvccPhasesTest, WhatIsReusedDependsOnWhatTheProgramReads) {
  const auto phases = PhasesOf(CompileStep(), kOneArchitecture);
  ASSERT_TRUE(phases.has_value());
  std::map<std::string, Step> steps = ByName(*phases);
  for (const char* name : {"preprocess host", "preprocess compute_90", "fatbinary host"}) {
    EXPECT_FALSE(steps[name].reuse.has_value()) << name;
  }
  EXPECT_THAT(steps["cudafe++ host"].reuse->inputs,
              UnorderedElementsAre("u/keep/unit.module_id", "u/keep/unit.cpp4.ii"));
  EXPECT_THAT(steps["cicc compute_90"].reuse->inputs,
              UnorderedElementsAre("u/keep/unit.module_id", "u/keep/unit.compute_90.cpp1.ii"));
  EXPECT_THAT(steps["ptxas sm_90"].reuse->inputs, ElementsAre("u/keep/unit.compute_90.ptx"));
  EXPECT_THAT(steps["ptxas sm_90"].reuse->dependencies, IsEmpty());
  EXPECT_THAT(steps["host compile"].reuse->dependencies, UnorderedElementsAre("u/unit.o.d", "u/as.d"));
}

TEST(NvccPhasesTest, OnlyDeviceCodeCountsForCiccUnlessTheObjectHoldsLines) {
  std::map<std::string, Step> steps = ByName(*PhasesOf(CompileStep(), kOneArchitecture));
  EXPECT_EQ(steps["cicc compute_90"].reuse->device_unit, "u/keep/unit.compute_90.cpp1.ii");
  for (const char* name : {"cudafe++ host", "ptxas sm_90", "host compile"}) {
    EXPECT_EQ(steps[name].reuse->device_unit, "") << name;
  }
  for (const char* word : {"-g", "-ggdb", "-fsanitize=undefined", "-fprofile-arcs", "--coverage"}) {
    const std::string dry_run = absl::StrReplaceAll(kOneArchitecture, {{"-c -x c++", StrCat(word, " -c -x c++")}});
    steps = ByName(*PhasesOf(CompileStep(), dry_run));
    EXPECT_EQ(steps["cicc compute_90"].reuse->device_unit, "") << word;
  }
  const std::string line_info =
      absl::StrReplaceAll(kOneArchitecture, {{"cicc\" -arch", "cicc\" -generate-line-info -arch"}});
  EXPECT_EQ(ByName(*PhasesOf(CompileStep(), line_info))["cicc compute_90"].reuse->device_unit, "");
}

TEST(NvccPhasesTest, HostBodiesCountForACiccThatMindsWhatIsUnused) {
  std::map<std::string, Step> steps = ByName(*PhasesOf(CompileStep(), kOneArchitecture));
  EXPECT_FALSE(steps["cicc compute_90"].reuse->host_bodies_count);
  for (const char* word : {"--device-c", "--partial-link", "--keep-device-functions", "--promote_warnings",
                           "--diag_error 177", "--diag_error=177"}) {
    const std::string dry_run =
        absl::StrReplaceAll(kOneArchitecture, {{"cicc\" -arch", StrCat("cicc\" ", word, " -arch")}});
    steps = ByName(*PhasesOf(CompileStep(), dry_run));
    EXPECT_TRUE(steps["cicc compute_90"].reuse->host_bodies_count) << word;
    EXPECT_EQ(steps["cicc compute_90"].reuse->device_unit, "u/keep/unit.compute_90.cpp1.ii") << word;
  }
}

TEST(NvccPhasesTest, HostBodiesCountIfTheCompileSaysSo) {
  Step compile = CompileStep();
  compile.nvcc->host_bodies_count = true;
  EXPECT_TRUE(ByName(*PhasesOf(compile, kOneArchitecture))["cicc compute_90"].reuse->host_bodies_count);
}

TEST(NvccPhasesTest, TellsWhereTheToolkitsHeadersAreSearched) {
  const std::string dry_run = absl::StrReplaceAll(
      kOneArchitecture, {{"-x c++ -include", "-x c++ -I\"kernix\" -I\"toolchain/cuda/include\" -include"}});
  const auto phases = PhasesOf(CompileStep(), dry_run);
  ASSERT_TRUE(phases.has_value());
  EXPECT_EQ(phases->unit, "u/unit.cu");
  EXPECT_EQ(phases->toolkit_headers, "-Itoolchain/cuda/include");
  EXPECT_EQ(phases->preprocess[phases->host_pass].action.step, "preprocess host");
  // The compile's own words name folders of users.
  const auto without = PhasesOf(CompileStep(), absl::StrReplaceAll(dry_run, {{" -I\"toolchain/cuda/include\"", ""}}));
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(without->toolkit_headers, "");
}

TEST(NvccPhasesTest, TellsWhetherWhatNobodyUsesShows) {
  const auto tells = [](const char* from, const char* to) {
    const auto phases = PhasesOf(CompileStep(), absl::StrReplaceAll(kOneArchitecture, {{from, to}}));
    return phases.has_value() && phases->shows_unused;
  };
  EXPECT_FALSE(tells("-E", "-E"));
  EXPECT_TRUE(tells("-E", "-g -E"));
  EXPECT_TRUE(tells("-E", "-fkeep-inline-functions -E"));
  EXPECT_TRUE(tells("-arch compute_90", "-generate-line-info -arch compute_90"));
  // Without optimization, g++ keeps static functions.
  EXPECT_TRUE(tells("-O3", ""));
  EXPECT_TRUE(tells("-O3", "-O3 -O0"));
  EXPECT_FALSE(tells("-O3", "-O0 -Og"));
  EXPECT_TRUE(tells("-O3", "-O3 -fno-toplevel-reorder"));
}

TEST(NvccPhasesTest, PhasesOfSeveralUnitsHaveTheirUnitsName) {
  Step compile = CompileStep();
  compile.action.step = "compile a.cu";
  const auto phases = PhasesOf(compile, kOneArchitecture);
  ASSERT_TRUE(phases.has_value());
  EXPECT_EQ(phases->preprocess.front().action.step, "preprocess compute_90 a.cu");
}

TEST(NvccPhasesTest, UnitsThatAreLinkedTogetherHaveDifferentModuleIds) {
  const auto id_of = [](const std::string& object) {
    Step compile = CompileStep();
    compile.object = object;
    compile.action.outputs.front() = object;
    const auto phases = PhasesOf(compile, absl::StrReplaceAll(kOneArchitecture, {{"u/unit.o", object}}));
    return std::string(*ByName(*phases)["cicc compute_90"].action.inputs.back().content);
  };
  EXPECT_EQ(id_of("u/0-a.cu/unit.o"), id_of("u/0-a.cu/unit.o"));
  EXPECT_NE(id_of("u/0-a.cu/unit.o"), id_of("u/1-b.cu/unit.o"));
}

TEST(NvccPhasesTest, WhatIsNotUnderstoodIsNotGuessed) {
  const std::string good = kOneArchitecture;
  const auto with = [&](const char* from, const char* to) { return absl::StrReplaceAll(good, {{from, to}}); };
  EXPECT_FALSE(PhasesOf(CompileStep(), "").has_value());
  EXPECT_FALSE(PhasesOf(CompileStep(), good + "#$ newtool u/unit.o\n").has_value());
  EXPECT_FALSE(PhasesOf(CompileStep(), with("ptxas -arch", "ptxas2 -arch")).has_value());
  EXPECT_FALSE(PhasesOf(CompileStep(), with("--stub_file_name \"unit", "--stub \"unit")).has_value());
  EXPECT_FALSE(PhasesOf(CompileStep(), with("--embedded-fatbin=", "--embed=")).has_value());
  EXPECT_FALSE(PhasesOf(CompileStep(), with("-o \"u/unit.o\"", "-o \"u/other.o\"")).has_value());
  EXPECT_FALSE(PhasesOf(CompileStep(), with("toolchain/host/g++ -E", "g++-7 -E")).has_value());
  EXPECT_FALSE(PhasesOf(CompileStep(), with("cicc\" -arch", "cicc\" -show-src -arch")).has_value());  // reads sources
  EXPECT_FALSE(PhasesOf(CompileStep(), with("-Xassembler u/as.d ", "")).has_value());  // an output that nobody makes
  EXPECT_FALSE(PhasesOf(CompileStep(), with(".cpp4.ii", ".cpp1.ii")).has_value());     // two make one file
}

TEST(NvccPhasesTest, Cuda12_1) {
  const auto phases = PhasesOf(CompileStep(), kCuda12_1);
  ASSERT_TRUE(phases.has_value());
  EXPECT_EQ(phases->host_pass, 0u);
  EXPECT_EQ(phases->preprocess[0].action.step, "preprocess host");
  EXPECT_EQ(phases->toolkit_headers, "-Itoolchain/cuda/bin/../targets/x86_64-linux/include");
  std::map<std::string, Step> steps = ByName(*phases);
  ASSERT_EQ(steps.size(), 7u);
  EXPECT_EQ(steps["cicc compute_70"].action.argv.front(), "toolchain/cuda/bin/../nvvm/bin/cicc");
  EXPECT_EQ(steps["ptxas sm_70"].action.argv.front(), "toolchain/cuda/bin/ptxas");
  EXPECT_THAT(steps["cudafe++ host"].action.argv, Not(Contains("--gen_module_id_file")));
  EXPECT_THAT(steps["cicc compute_70"].inputs_from_steps, ElementsAre("u/keep/unit.compute_70.cpp1.ii"));
  EXPECT_THAT(
      steps["host compile"].inputs_from_steps,
      UnorderedElementsAre("u/keep/unit.cudafe1.cpp", "u/keep/unit.compute_70.cudafe1.stub.c", "u/keep/unit.fatbin.c"));
}

TEST(NvccPhasesTest, Cuda12_5WithTwoArchitectures) {
  const auto phases = PhasesOf(CompileStep(), kCuda12_5);
  ASSERT_TRUE(phases.has_value());
  std::map<std::string, Step> steps = ByName(*phases);
  ASSERT_EQ(steps.size(), 10u);
  EXPECT_EQ(phases->host_text, "u/keep/unit.compute_70.cudafe1.cpp");
  EXPECT_EQ(steps["cicc compute_60"].action.argv.front(), "toolchain/cuda/bin/../nvvm/bin/cicc");
  EXPECT_THAT(steps["fatbinary host"].inputs_from_steps,
              UnorderedElementsAre("u/keep/unit.compute_60.cubin", "u/keep/unit.compute_70.ptx",
                                   "u/keep/unit.compute_70.sm_70.cubin"));
  EXPECT_THAT(steps["host compile"].inputs_from_steps,
              UnorderedElementsAre("u/keep/unit.compute_70.cudafe1.cpp", "u/keep/unit.compute_70.cudafe1.stub.c",
                                   "u/keep/unit.fatbin.c"));
  const auto next = PhasesOf(CompileStep(), absl::StrReplaceAll(kCuda12_5, {{"\"$CICC_PATH/", "\"$CICC_NEXT_PATH/"}}));
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(ByName(*next)["cicc compute_60"].action.argv.front(), "toolchain/cuda/bin/../nvvm-next/bin/cicc");
}

// In Ubuntu 24.04, for example, which has CUDA 12.0.
TEST(NvccPhasesTest, ADistributionsProgramsAreBesideTheHostCompiler) {
  const std::string dry_run = absl::StrReplaceAll(
      kCuda12_1, {{"PATH=toolchain/cuda/bin/../nvvm/bin:toolchain/cuda/bin:", "PATH=toolchain/cuda/bin:"}});
  const auto phases = PhasesOf(CompileStep(), dry_run, ProgramFolder::kBesideHostCompiler);
  ASSERT_TRUE(phases.has_value());
  std::map<std::string, Step> steps = ByName(*phases);
  EXPECT_EQ(steps["cudafe++ host"].action.argv.front(), "toolchain/host/cudafe++");
  EXPECT_EQ(steps["ptxas sm_70"].action.argv.front(), "toolchain/host/ptxas");
  EXPECT_EQ(steps["fatbinary host"].action.argv.front(), "toolchain/host/fatbinary");
  EXPECT_EQ(steps["cicc compute_70"].action.argv.front(), "toolchain/cuda/bin/cicc");
}

TEST(NvccPhasesTest, WhatCuda12MayPrintAndNobodyHasSeenIsNotGuessed) {
  EXPECT_FALSE(PhasesOf(CompileStep(), StrCat(kCuda12_9Warning, kCuda12_5)).has_value());
  for (const auto& [from, to] : std::map<std::string, std::string>{
           // A pass of its own for dependencies.
           {"#$ -- Filter Dependencies -- > u/unit.d",
            "#$ toolchain/host/g++ -E -M -x c++ -include \"cuda_runtime.h\" \"u/unit.cu\" -o \"u/unit.d\" "},
           {"#$ -- Filter", "#$ -- Make"},
           // Output to a file, as before 11.
           {"\"u/unit.cu\" -o \"u/keep/unit.cpp4.ii\"", "\"u/unit.cu\" > \"u/keep/unit.cpp4.ii\""},
           // What nvcc does without --keep.
           {"#$ ptxas", "#$ rm u/keep/unit.fatbin\n#$ ptxas"},
           // A check of PTX, as newer releases run it for an architecture without machine code.
           {" -o \"u/keep/unit.sm_70.cubin\"", ""},
           {"cicc --c++17", "$CICC_PATH/cicc --c++17"}}) {
    const std::string dry_run = absl::StrReplaceAll(kCuda12_1, {{from, to}});
    ASSERT_NE(dry_run, kCuda12_1) << from;
    EXPECT_FALSE(PhasesOf(CompileStep(), dry_run).has_value()) << to;
  }
}

TEST(NvccPhasesTest, TheQuestionNeedsNoFile) {
  const exec::Action question = DryRunOf(CompileStep());
  EXPECT_EQ(question.argv.back(), "--dryrun");
  EXPECT_THAT(question.inputs, IsEmpty());
  EXPECT_THAT(question.outputs, IsEmpty());
}

}  // namespace

}  // namespace kernix::build
