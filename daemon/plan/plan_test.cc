// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string_view>

#include "absl/strings/str_join.h"
#include "common/base/elf_image.h"
#include "common/base/shell_words.h"
#include "common/base/strings.h"
#include "daemon/exec/action_digest.h"
#include "daemon/plan/plan_parts.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::IsSupersetOf;
using ::testing::Not;

// A plan reads no file, so these tools need not exist.
BuildRequest Request(v1::Language language, int architectures = 0) {
  auto toolchain = std::make_shared<toolchain::Toolchain>();
  toolchain->host.path = "/bin/g++";
  BuildRequest request;
  request.language = language;
  request.units = {{language, {{"kernel", "void f(BE::Tensor y) {}\n"}}, {}}};
  if (language == v1::LANGUAGE_CUDA) {
    toolchain->cuda.emplace().nvcc = "/cuda/bin/nvcc";
    toolchain->cuda->root = "/cuda";
  }
  for (int i = 0; i < architectures; ++i) request.architectures.push_back(StrCat("sm_", 80 + i));
  request.toolchain = std::move(toolchain);
  return request;
}

Plan MustPlan(const BuildRequest& request, const PlanLimits& limits = {}, const HeaderContents& contents = {}) {
  exec::KeptTrees trees(1 << 30);
  absl::StatusOr<Plan> plan = MakePlan(request, limits);
  EXPECT_THAT(plan, IsOk());
  if (!plan.ok()) return Plan();
  EXPECT_THAT(StagePlan(request, contents, trees, *plan), IsOk());
  return *std::move(plan);
}

// The number of threads shows in the object, so it must not depend on the machine.
TEST(PlanTest, PtxasHasFourThreads) {
  const auto words = [](int major_version) {
    BuildRequest request = Request(v1::LANGUAGE_CUDA, 1);
    toolchain::Toolchain toolchain = *request.toolchain;
    toolchain.cuda->major_version = major_version;
    request.toolchain = std::make_shared<const toolchain::Toolchain>(std::move(toolchain));
    return absl::StrJoin(MustPlan(request).steps[0].action.argv, " ");
  };
  EXPECT_THAT(words(13), HasSubstr(" -Xptxas --split-compile=4 "));
  EXPECT_THAT(words(12), Not(HasSubstr("split-compile")));
}

TEST(PlanTest, EveryStepSaysWhatItNeeds) {
  BuildRequest relocatable = Request(v1::LANGUAGE_CUDA, 1);
  relocatable.relocatable_device_code = true;
  for (const BuildRequest& request : {Request(v1::LANGUAGE_CPP), relocatable}) {
    for (const Step& step : MustPlan(request).steps) {
      EXPECT_GT(step.action.memory_estimate_bytes, 0u) << step.action.step;
    }
  }
}

std::vector<std::string> StepNames(const Plan& plan) {
  std::vector<std::string> names;
  for (const Step& step : plan.steps) names.push_back(step.action.step);
  return names;
}

TEST(PlanTest, SeparateUnitsAreCompiledSideBySideAndLinkedOnce) {
  BuildRequest request = Request(v1::LANGUAGE_CUDA, 4);
  request.relocatable_device_code = true;
  request.units = {{v1::LANGUAGE_CUDA, {{"a b,c.cu", ""}}, {}, {}}, {v1::LANGUAGE_CPP, {{"d.cpp", ""}}, {}, {}}};
  const Plan plan = MustPlan(request);
  EXPECT_THAT(StepNames(plan), ElementsAre("compile a b,c.cu", "compile d.cpp", "device link", "link"));
  // Names that nvcc and linkers read as part of a word contain no separators of theirs.
  EXPECT_THAT(plan.steps[2].inputs_from_steps, ElementsAre("kernix-unit/0-a_b_c.cu/unit.o"));
  EXPECT_THAT(plan.steps[3].inputs_from_steps,
              ElementsAre("kernix-unit/0-a_b_c.cu/unit.o", "kernix-unit/1-d.cpp/unit.o", "kernix-unit/device.o"));
  EXPECT_THAT(plan.files.dependencies,
              ElementsAre("kernix-unit/0-a_b_c.cu/unit.d", "kernix-unit/0-a_b_c.cu/assembler.d",
                          "kernix-unit/1-d.cpp/unit.d", "kernix-unit/1-d.cpp/assembler.d"));
}

TEST(PlanTest, UnitsShareTheirHeaders) {
  constexpr size_t kUnits = 1024;
  constexpr size_t kHeaders = 20'000;
  BuildRequest request = Request(v1::LANGUAGE_CPP);
  request.units.clear();
  for (size_t i = 0; i < kUnits; ++i) request.units.push_back({v1::LANGUAGE_CPP, {{StrCat(i, ".cpp"), ""}}, {}, {}});
  request.include_root_count = 2;
  request.root_climbs = {0, 0};
  HeaderContents contents;
  for (size_t i = 0; i < kHeaders; ++i) {
    const std::string text = StrCat("int header", i, ";");
    contents[DigestOf(text)] = exec::MakeContent(text);
    request.headers.push_back({static_cast<uint32_t>(i % 2), StrCat(i, ".h"), DigestOf(text), text.size()});
  }
  const Plan plan = MustPlan(request, {}, contents);
  ASSERT_EQ(plan.steps.size(), kUnits + 1);
  const auto& trees = plan.steps[0].action.trees;
  ASSERT_EQ(trees->size(), 3u);  // with the kernel headers
  size_t files = 0;
  for (const Step& step : plan.steps) {
    files += step.action.inputs.size();
    EXPECT_TRUE(step.action.trees == trees || step.action.step == "link");
  }
  EXPECT_LT(files, kUnits * 100);  // our own headers
}

BuildRequest WithOddToolchain(BuildRequest request) {
  auto toolchain = std::make_shared<toolchain::Toolchain>(*request.toolchain);
  toolchain->host.path = "/a b/$(touch x)/g++";
  toolchain->host.system_include_directories = {"/usr/include", "/a b/`x`/include", "/with,comma"};
  toolchain->cuda->root = "/my 'cuda';";
  toolchain->cuda->nvcc = "/my 'cuda';/bin/nvcc";
  toolchain->cuda->include_directories = {"/my 'cuda';/include", "/wheels (x)/cccl"};
  request.toolchain = std::move(toolchain);
  return request;
}

BuildRequest WithEverything() {
  BuildRequest request = Request(v1::LANGUAGE_CUDA, 2);
  request.relocatable_device_code = true;
  request.keep = true;
  request.definitions = {"#define X $(touch x)"};
  request.nvcc_flags = {"-lineinfo"};
  request.host_flags = {"-fopenmp", "-g"};
  request.flag_files = {{"flag-files/F0/a.o", "/a.o", DigestOf("a")}};
  request.units = {{v1::LANGUAGE_CUDA, {{"a $(touch x);`y`'\".cu", ""}}, {}, {}},
                   {v1::LANGUAGE_CPP, {{"@b ~.cpp", ""}}, {}, {}}};
  return request;
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Shortcuts need these facts, and time is measured by the kinds of steps.
TEST(PlanTest, StepsSayWhatTheirCommandsDo) {
  const HeaderContents contents = {{DigestOf("a"), exec::MakeContent("a")}};
  BuildRequest cuda = WithEverything();
  cuda.disassembler = "/cuda/bin/nvdisasm";
  for (const BuildRequest& request : {Request(v1::LANGUAGE_CPP), cuda, Request(v1::LANGUAGE_CUDA, 1)}) {
    size_t assembled = 0;
    for (const Step& step : MustPlan(request, {}, contents).steps) {
      const std::string& name = step.action.step;
      EXPECT_EQ(!step.object.empty(), Has(step.action.argv, "-c") && name != "handler") << name;
      EXPECT_EQ(step.action.work, name.starts_with("disassemble")           ? exec::Work::kOther
                                  : name == "link" || name == "device link" ? exec::Work::kLink
                                                                            : exec::Work::kHostCompile)
          << name;
      if (step.object.empty()) continue;
      ++assembled;
      EXPECT_TRUE(Has(step.action.outputs, step.object)) << name;
      EXPECT_EQ(*std::next(std::find(step.action.argv.begin(), step.action.argv.end(), "-o")), step.object) << name;
    }
    EXPECT_EQ(assembled, request.units.size());
  }
}

// nvcc passes its words to a shell.
TEST(PlanTest, NoWordForNvccIsOneThatAShellWouldRead) {
  const HeaderContents contents = {{DigestOf("a"), exec::MakeContent("a")}};
  const BuildRequest plain = WithEverything();
  for (const BuildRequest& request :
       {plain, WithOddToolchain(plain), WithOddToolchain(Request(v1::LANGUAGE_CUDA, 1))}) {
    int steps = 0;
    for (const Step& step : MustPlan(request, {}, contents).steps) {
      const bool is_nvcc = step.action.argv[0].ends_with("/nvcc");
      EXPECT_EQ(step.action.tool_uses_shell, is_nvcc) << step.action.step;
      if (!is_nvcc) continue;
      ++steps;
      for (const std::string& word : exec::LocalCommand(step.action)) EXPECT_TRUE(IsHarmlessWord(word)) << word;
      EXPECT_EQ(step.action.environment.at("TMPDIR"), ".");
    }
    EXPECT_EQ(steps, request.keep ? 7 : 1);
  }
}

TEST(PlanTest, CommandsHoldNoPlaceOfTheMachine) {
  const Plan plan = MustPlan(WithOddToolchain(Request(v1::LANGUAGE_CUDA, 1)));
  const exec::Action& compile = plan.steps[0].action;
  EXPECT_EQ(compile.argv[0], "toolchain/cuda/bin/nvcc");
  EXPECT_EQ(compile.links.size(), 3u);
  EXPECT_EQ(plan.files.links.size(), 3u);
  EXPECT_THAT(compile.argv, IsSupersetOf({"toolchain/cuda/include", "{kernix-host-compiler}", "toolchain/include-1",
                                          "-ffile-prefix-map=toolchain/cuda=kernix-cuda",
                                          "-ffile-prefix-map={kernix-host-0}=kernix-host-0"}));
  EXPECT_THAT(exec::LocalCommand(compile), Contains("-ffile-prefix-map=/usr/include=kernix-host-0"));
  for (const Step& step : plan.steps) {
    for (const std::string& word : step.action.argv) EXPECT_EQ(word.find("/usr"), std::string::npos) << word;
  }
}

std::string TextOf(const exec::Action& action, const std::string& path) {
  for (const exec::InputFile& input : action.inputs) {
    if (input.path == path) return std::string(*input.content);
  }
  return "";
}

TEST(PlanTest, MacrosOfFlagsAreTextOfTheUnits) {
  const Plan plan = MustPlan(WithEverything(), {}, {{DigestOf("a"), exec::MakeContent("a")}});
  const exec::Action& cuda = plan.steps[0].action;
  EXPECT_THAT(TextOf(cuda, "kernix-macros/cuda_runtime.h"), HasSubstr("\n#define X $(touch x)\n#endif\n"));
  EXPECT_THAT(TextOf(cuda, cuda.argv.back()), Not(HasSubstr("#define X")));
  EXPECT_THAT(cuda.argv, Contains("-iquotekernix-macros"));
  const exec::Action& cpp = plan.steps[1].action;
  EXPECT_EQ(TextOf(cpp, "kernix-macros/cuda_runtime.h"), "");
  EXPECT_THAT(TextOf(cpp, cpp.argv.back()), HasSubstr("#line 1 \"<command-line>\"\n#define X $(touch x)\n#ifdef X\n"));
  const Plan without = MustPlan(Request(v1::LANGUAGE_CUDA, 1));
  EXPECT_EQ(TextOf(without.steps[0].action, "kernix-macros/cuda_runtime.h"), "");
}

// Neither a tool nor its loader finds a source there.
TEST(PlanTest, NoSourceLiesInTheWorkingFolderOfATool) {
  BuildRequest request = Request(v1::LANGUAGE_CUDA, 1);
  for (const char* label : {"cuda_runtime.h", "libisl.so.23", "specs", "toolchain", "kernix-unit"}) {
    request.units[0].sources = {{label, "int a;"}};
    const exec::Action action = MustPlan(request).steps[0].action;
    EXPECT_EQ(TextOf(action, label), "");
    EXPECT_EQ(TextOf(action, StrCat("kernix-source/", label)), "int a;");
    for (const exec::InputFile& input : action.inputs) EXPECT_THAT(input.path, HasSubstr("/"));
  }
}

// A source can write link-time optimization sections with assembler text; the link would compile them.
TEST(PlanTest, TheLinkCompilesNothingUnlessItIsTo) {
  BuildRequest request = Request(v1::LANGUAGE_CPP);
  EXPECT_THAT(MustPlan(request).steps.back().action.argv, Contains("-fno-lto"));
  EXPECT_EQ(MustPlan(request).steps.back().kind, StepKind::kPlainLink);
  request.host_flags = {"-flto=2"};
  EXPECT_THAT(MustPlan(request).steps.back().action.argv, Not(Contains("-fno-lto")));
  EXPECT_EQ(MustPlan(request).steps.back().kind, StepKind::kLink);
}

TEST(PlanTest, ClangCallsTheAssemblerThatReportsFiles) {
  BuildRequest request = Request(v1::LANGUAGE_CPP);
  toolchain::Toolchain clang = *request.toolchain;
  clang.host.kind = toolchain::HostCompilerKind::kClang;
  request.toolchain = std::make_shared<const toolchain::Toolchain>(clang);
  const Plan plan = MustPlan(request);
  EXPECT_THAT(plan.steps.front().action.argv, Contains("-fno-integrated-as"));
  EXPECT_THAT(plan.files.dependencies, Contains("kernix-unit/assembler.d"));
  request.host_flags = {"-flto=thin"};
  const Plan lto = MustPlan(request);
  EXPECT_THAT(lto.steps.front().action.argv, Not(Contains("-fno-integrated-as")));
  EXPECT_THAT(lto.steps.front().action.outputs, Not(Contains("kernix-unit/assembler.d")));
  EXPECT_THAT(lto.files.dependencies, Not(Contains("kernix-unit/assembler.d")));
}

// The digest of the step that compiles what all handlers share.
Digest HandlerDigest(const BuildRequest& request) {
  const Plan plan = MustPlan(request);
  const auto handler = std::find_if(plan.steps.begin(), plan.steps.end(),
                                    [](const Step& step) { return step.action.step == "handler"; });
  return handler == plan.steps.end() ? Digest() : exec::DigestOfAction(handler->action, {}).hash;
}

TEST(PlanTest, ALinkWithWhatTheUserNamesIsNotPlain) {
  const auto is_plain = [](std::vector<std::string> host_flags, std::vector<std::string> link_flags) {
    BuildRequest request = Request(v1::LANGUAGE_CPP);
    request.host_flags = std::move(host_flags);
    request.link_flags = std::move(link_flags);
    return MustPlan(request).steps.back().kind == StepKind::kPlainLink;
  };
  EXPECT_TRUE(is_plain({"-O2", "-march=native"}, {}));
  EXPECT_FALSE(is_plain({"--sysroot=/opt/root"}, {}));
  EXPECT_FALSE(is_plain({}, {"-lmine"}));
}

TEST(PlanTest, KernelsThatDifferInWhatIsTheirsTakeTheHandlersThatComeWithKernixd) {
  BuildRequest request = Request(v1::LANGUAGE_CPP);
  for (const char* flag : {"-DBLOCK=64", "-Wall", "-Werror", "-std=c++20", "-Ofast", "-O1", "-pedantic", "-fopenmp",
                           "-pthread", "-march=native", "-mtune=generic"}) {
    request.host_flags = {flag};
    EXPECT_EQ(HandlerDigest(request), Digest()) << flag;
  }
  const Plan plan = MustPlan(request);
  const Step& link = plan.steps.back();
  EXPECT_THAT(link.inputs_from_steps, ElementsAre("kernix-unit/unit.o"));
  EXPECT_THAT(link.action.argv, Contains("kernix-unit/handler.o"));
  ASSERT_THAT(link.action.inputs, ElementsAre(Field(&exec::InputFile::path, "kernix-unit/handler.o")));
  EXPECT_EQ(*link.action.inputs[0].content, HandlersPart());
  EXPECT_THAT(plan.files.dependencies, Not(Contains("kernix-unit/handler.d")));
}

TEST(PlanTest, FlagsThatConcernHandlersHaveTheirOwn) {
  BuildRequest request = Request(v1::LANGUAGE_CPP);
  std::set<Digest> digests;
  for (const char* flag : {"-fsanitize=address", "-fno-exceptions", "-D_GLIBCXX_USE_CXX11_ABI=0", "-fshort-enums", "-g",
                           "-m32", "-stdlib=libc++", "-flto", "--coverage", "-fcf-protection=none"}) {
    request.host_flags = {flag};
    EXPECT_TRUE(digests.insert(HandlerDigest(request)).second) << flag;
    const Plan plan = MustPlan(request);
    EXPECT_THAT(plan.steps.back().inputs_from_steps, Contains("kernix-unit/handler.o"));
    EXPECT_THAT(plan.steps.back().action.inputs, IsEmpty());
    EXPECT_THAT(plan.files.dependencies, Contains("kernix-unit/handler.d"));
  }
  EXPECT_FALSE(digests.contains(Digest()));
}

// It is linked by compilers that are much older than the one that kernixd was built with.
TEST(PlanTest, TheHandlersThatComeWithKernixdNeedOldNamesOnly) {
  const auto object = ElfImage::ParseObject(HandlersPart());
  ASSERT_TRUE(object.ok()) << object.status();
  const auto symbols = object->Symbols();
  ASSERT_TRUE(symbols.ok()) << symbols.status();
  std::set<std::string_view> needed;
  for (const ElfImage::Symbol& symbol : *symbols) {
    if (!symbol.is_defined && !symbol.name.empty()) needed.insert(symbol.name);
  }
  EXPECT_THAT(needed, Contains("__cxa_begin_catch"));
  EXPECT_THAT(needed, IsSubsetOf({"_GLOBAL_OFFSET_TABLE_",
                                  "_Unwind_Resume",
                                  "_ZNSt15__exception_ptr13exception_ptrD1Ev",
                                  "_ZSt17current_exceptionv",
                                  "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
                                  "_ZSt9terminatev",
                                  "_ZTIPKc",
                                  "_ZTISt16nested_exception",
                                  "_ZTISt9exception",
                                  "_ZTIi",
                                  "_ZdaPv",
                                  "_Znam",
                                  "__cxa_begin_catch",
                                  "__cxa_current_exception_type",
                                  "__cxa_demangle",
                                  "__cxa_end_catch",
                                  "__cxa_rethrow",
                                  "__cxa_throw_bad_array_new_length",
                                  "__dynamic_cast",
                                  "__gxx_personality_v0",
                                  "__tls_get_addr",
                                  "bcmp",
                                  "free",
                                  "memcmp",
                                  "memcpy",
                                  "memset",
                                  "snprintf",
                                  "strcmp",
                                  "strlen",
                                  "strncmp",
                                  "vsnprintf"}));
}

TEST(PlanTest, WithoutDeviceCodeThereIsNoDeviceLink) {
  BuildRequest request = Request(v1::LANGUAGE_CUDA, 1);
  request.relocatable_device_code = true;
  request.units = {{v1::LANGUAGE_CPP, {{"a.cpp", ""}}, {}, {}}, {v1::LANGUAGE_CPP, {{"b.cpp", ""}}, {}, {}}};
  EXPECT_THAT(StepNames(MustPlan(request)), ElementsAre("compile a.cpp", "compile b.cpp", "link"));
}

TEST(PlanTest, WhatIsReadForThePtxCountsToo) {
  BuildRequest request = Request(v1::LANGUAGE_CUDA, 2);
  const Plan plain = MustPlan(request);
  request.keep = true;
  const Plan plan = MustPlan(request);
  EXPECT_EQ(plan.files.dependencies.size(), plain.files.dependencies.size() + 2);
  for (const std::string& file : plan.files.dependencies) {
    EXPECT_TRUE(std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
      return std::count(step.action.outputs.begin(), step.action.outputs.end(), file) == 1;
    })) << file;
  }
}

TEST(PlanTest, ADeviceLinkTakesInPrebuiltCode) {
  BuildRequest request = Request(v1::LANGUAGE_CUDA, 1);
  request.relocatable_device_code = true;
  request.flag_files = {{"flag-files/F0/a.o", "/a.o", DigestOf("a")}, {"flag-files/F1/b.so", "/b.so", DigestOf("b")}};
  const HeaderContents contents = {{DigestOf("a"), exec::MakeContent("a")}, {DigestOf("b"), exec::MakeContent("b")}};
  const Plan plan = MustPlan(request, {}, contents);
  EXPECT_EQ(plan.steps[1].action.step, "device link");
  EXPECT_EQ(plan.steps[1].action.argv.back(), "flag-files/F0/a.o");
}

TEST(PlanTest, EachUnitSearchesItsOwnFolders) {
  BuildRequest request = Request(v1::LANGUAGE_CPP);
  request.include_root_count = 3;
  request.root_climbs = {0, 0, 0};
  for (uint32_t root = 0; root < 3; ++root) request.headers.push_back({root, "a.h", DigestOf(""), 0});
  request.units = {{v1::LANGUAGE_CPP, {{"a.cpp", ""}}, {}, {{0, true}, {2, false}}},
                   {v1::LANGUAGE_CPP, {{"b.cpp", ""}}, {}, {{1, true}, {2, false}}}};
  const HeaderContents contents = {{DigestOf(""), exec::MakeContent("")}};
  const Plan plan = MustPlan(request, {}, contents);
  const auto searched = [&](size_t step) {
    std::vector<std::string> folders;
    for (const std::string& word : plan.steps[step].action.argv) {
      if (word.find("inc/") != std::string::npos) folders.push_back(word);
    }
    return folders;
  };
  EXPECT_THAT(searched(0), ElementsAre("-iquoteinc/0", "-Iinc/2"));
  EXPECT_THAT(searched(1), ElementsAre("-iquoteinc/1", "-Iinc/2"));
  request.headers.erase(request.headers.begin() + 1);
  const Plan other = MustPlan(request, {}, contents);
  EXPECT_THAT(other.steps[1].action.argv, testing::Not(testing::Contains("-iquoteinc/1"))) << "the folder is not there";
}

TEST(PlanTest, KeptTextsOfEachCudaUnitAndArchitecture) {
  BuildRequest request = Request(v1::LANGUAGE_CUDA, 2);
  request.keep = true;
  EXPECT_THAT(StepNames(MustPlan(request)),
              ElementsAre("compile", "ptx sm_80", "machine code sm_80", "ptx sm_81", "machine code sm_81", "link"));
  request.architectures.pop_back();
  request.disassembler = "/cuda/bin/nvdisasm";
  request.units.push_back({v1::LANGUAGE_CPP, {{"b.cpp", ""}}, {}, {}});
  const Plan plan = MustPlan(request);
  EXPECT_THAT(StepNames(plan), ElementsAre("compile kernel", "compile b.cpp", "ptx kernel sm_80",
                                           "machine code kernel sm_80", "disassemble kernel sm_80", "link"));
  ASSERT_EQ(plan.files.kept.size(), 3u);
  EXPECT_EQ(plan.files.kept[2].kind, v1::KeptText::SASS);
  EXPECT_EQ(plan.files.kept[2].path, "kernix-unit/0-kernel/sm_80.sass");
}

// If headers climb out of a root, the root must exist, but our marker must not replace a header of the user.
TEST(PlanTest, AMarkerOfARootIsNoHeaderOfTheUser) {
  BuildRequest request = Request(v1::LANGUAGE_CPP);
  const std::string text = "int kept;\n";
  const HeaderContents contents = {{DigestOf(text), exec::MakeContent(text)}};
  request.include_root_count = 1;
  request.root_climbs = {1};
  request.headers = {{0, "../up.h", DigestOf(text), text.size()}};
  const auto roots_files = [&] {
    MemEnv env;  // must outlive the plan's trees
    const Plan plan = MustPlan(request, {}, contents);
    const exec::MountedTree& root = plan.steps.at(0).action.trees->at(1);
    EXPECT_EQ(root.path, "inc/0");
    const std::string folder = root.tree->Stage(env, "/scratch").value();
    EXPECT_TRUE(env.Stat(folder + "/up.h").ok());
    return env.ListDirectory(folder + "/.up").value();
  };
  EXPECT_THAT(roots_files(), ElementsAre(".keep"));
  for (const char* path : {".keep", ".keep/in_folder.h", "other.h"}) {
    request.headers = {{0, "../up.h", DigestOf(text), text.size()}, {0, path, DigestOf(text), text.size()}};
    EXPECT_THAT(roots_files(), ElementsAre(std::string(path).substr(0, std::string(path).find('/'))));
  }
}

}  // namespace

}  // namespace kernix::build
