// SPDX-License-Identifier: Apache-2.0
#include "kernix/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "client/load/kernel_resources.h"
#include "common/os/env.h"
#include "kernix/error.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScratchFolder;
using ::testing::UnorderedElementsAre;

// A module without a compiled artifact.
class FakeModule : public Module {
 public:
  const std::string& name() const override { return name_; }
  Language language() const override { return language_; }
  const std::string& path() const override { return path_; }
  const std::vector<FunctionInfo>& functions() const override { return functions_; }
  absl::StatusOr<Handler> handler(std::string_view) const override { return absl::NotFoundError("none"); }
  const std::string& key() const override { return name_; }
  const std::string& artifact_digest() const override { return name_; }
  Origin origin() const override { return Origin::kBuilt; }
  uint64_t build_ms() const override { return 0; }
  const std::string& miss_reason() const override { return name_; }
  std::string_view artifact() const override { return artifact_; }
  absl::StatusOr<ModuleTexts> texts() const override { return texts_; }

  FakeModule& AddUnit(std::string label, Language language, std::string text) {
    texts_.units.push_back({{std::move(label)}, language, std::move(text)});
    return *this;
  }
  FakeModule& Keep(KeptText::Kind kind, size_t unit, std::string architecture, std::string text) {
    texts_.kept.push_back({kind, unit, std::move(architecture), std::move(text)});
    return *this;
  }
  void SetLanguage(Language language) { language_ = language; }

 private:
  std::string name_ = "mine";
  std::string path_;
  Language language_ = Language::kCuda;
  std::vector<FunctionInfo> functions_;
  ModuleTexts texts_;
  std::string artifact_ = "library";
};

constexpr auto kPtx = KeptText::Kind::kPtx;
constexpr auto kSass = KeptText::Kind::kSass;
constexpr auto kResources = KeptText::Kind::kResources;

// Two CUDA units around a C++ unit, for two architectures.
FakeModule Kept() {
  FakeModule module;
  module.AddUnit("a.cu", Language::kCuda, "A;").AddUnit("b.cpp", Language::kCpp, "B;");
  module.AddUnit("c.cu", Language::kCuda, "C;");
  for (const size_t unit : {0u, 2u}) {
    for (const char* architecture : {"sm_80", "sm_90"}) {
      const std::string kernel = std::string(unit == 0 ? "a" : "c");
      module.Keep(kPtx, unit, architecture, kernel + architecture + ";");
      module.Keep(kResources, unit, architecture, "Compiling entry function '" + kernel + "' for\n");
    }
  }
  return module;
}

std::vector<std::string> NamesIn(const std::string& folder) { return Env::Posix().ListDirectory(folder).value(); }

TEST(PtxasReportTest, SpillsSeveralBanksAndDeviceFunctionsInBetween) {
  const std::vector<KernelResources> kernels = ReadPtxasReport(
      "ptxas info    : 0 bytes gmem, 16 bytes cmem[3]\n"
      "ptxas info    : Compiling entry function '_Z5spillPf' for 'sm_80'\n"
      "ptxas info    : Function properties for _Z5spillPf\n"
      "    48 bytes stack frame, 44 bytes spill stores, 40 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 2 barriers, 1024+0 bytes smem, 380 bytes cmem[0], 8 bytes cmem[2]\n"
      "ptxas info    : Function properties for _Z6helperf\n"
      "    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'plain' for 'sm_80'\n"
      "ptxas info    : Function properties for plain\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers\n",
      "sm_80");
  ASSERT_EQ(kernels.size(), 2u);
  const KernelResources& spill = kernels[0];
  EXPECT_EQ(spill.name, "spill(float*)");
  EXPECT_EQ(spill.symbol, "_Z5spillPf");
  EXPECT_EQ(spill.architecture, "sm_80");
  EXPECT_THAT(
      (std::vector<std::optional<uint64_t>>{spill.registers, spill.shared_memory, spill.stack_frame, spill.spill_stores,
                                            spill.spill_loads, spill.constant_memory, spill.barriers}),
      ElementsAre(255, 1024, 48, 44, 40, 388, 2));
  EXPECT_EQ(kernels[1].name, "plain");
  EXPECT_EQ(kernels[1].registers, 8u);
  EXPECT_EQ(kernels[1].constant_memory, 0u);
}

TEST(PtxasReportTest, ANameOfCIsNoType) {
  EXPECT_EQ(ReadPtxasReport("Compiling entry function 'f' for 'sm_80'\n", "sm_80")[0].name, "f");
}

TEST(PtxasReportTest, AnyTextIsSafe) {
  EXPECT_THAT(ReadPtxasReport("", "sm_80"), IsEmpty());
  EXPECT_THAT(ReadPtxasReport("Used 8 registers\n", "sm_80"), IsEmpty());
  const std::vector<KernelResources> kernels = ReadPtxasReport(
      "Compiling entry function '\n registers, 99999999999999999999999 barriers,+ bytes smem,", "sm_80");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].barriers + kernels[0].shared_memory + kernels[0].registers, 0u);
}

TEST(InspectionTest, TextsOfTheNewestArchitectureOrOfTheOneThatIsNamed) {
  const FakeModule module = Kept();
  EXPECT_EQ(Ptx(module).value(), "asm_90;csm_90;");
  EXPECT_EQ(Ptx(module, "sm_80").value(), "asm_80;csm_80;");
  const absl::Status status = Ptx(module, "sm_70").status();
  EXPECT_EQ(DescribeError(status).category, ErrorCategory::kInvalidRequest);
  EXPECT_THAT(status.ToString(), HasSubstr("compiled for sm_80, sm_90, not for sm_70"));
}

TEST(InspectionTest, ResourcesByArchitecture) {
  const std::vector<KernelResources> kernels = Resources(Kept()).value();
  std::vector<std::string> seen;
  for (const KernelResources& kernel : kernels) seen.push_back(kernel.name + kernel.architecture);
  EXPECT_THAT(seen, ElementsAre("asm_80", "csm_80", "asm_90", "csm_90"));
}

TEST(InspectionTest, SourcesOfAllUnitsOrOfOne) {
  EXPECT_EQ(GeneratedSource(Kept()).value(), "A;B;C;");
  EXPECT_EQ(GeneratedSource(Kept(), "b.cpp").value(), "B;");
  const absl::Status status = GeneratedSource(Kept(), "d.cu").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), HasSubstr("it has: a.cu, b.cpp, c.cu"));
}

TEST(InspectionTest, WhatWasNotKeptIsSaid) {
  EXPECT_THAT(Sass(Kept()).status().ToString(), HasSubstr("nvidia-cuda-nvdisasm"));
  FakeModule module;
  EXPECT_THAT(Ptx(module).status().ToString(), HasSubstr("without `keep`"));
  EXPECT_THAT(Sass(module).status().ToString(), HasSubstr("without `keep`"));
  EXPECT_THAT(Resources(module).status().ToString(), HasSubstr("Load it again with `keep`"));
  module.SetLanguage(Language::kCpp);
  EXPECT_THAT(Resources(module).status().ToString(), HasSubstr("only CUDA modules"));
}

TEST(BuildDirectoryTest, ReceivesWhatAPersonReadsAndTheLibrary) {
  const ScratchFolder scratch;
  FakeModule module;
  module.AddUnit("a.cu", Language::kCuda, "A;").Keep(kPtx, 0, "sm_90", "ptx").Keep(kSass, 0, "sm_90", "sass");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(WriteBuildDirectory(module, scratch / "made/here").ok());
  EXPECT_THAT(NamesIn(scratch / "made/here"),
              UnorderedElementsAre("mine.kernix.cu", "mine.so", "mine.sm_90.ptx", "mine.sm_90.sass"));
  EXPECT_EQ(Env::Posix().ReadFile(scratch / "made/here/mine.sm_90.ptx").value(), "ptx");
  EXPECT_EQ(Env::Posix().ReadFile(scratch / "made/here/mine.so").value(), "library");
}

TEST(BuildDirectoryTest, UnitsHaveNumbers) {
  const ScratchFolder scratch;
  FakeModule module = Kept();
  ASSERT_TRUE(WriteBuildDirectory(module, scratch / "out").ok());
  EXPECT_THAT(NamesIn(scratch / "out"),
              ::testing::IsSupersetOf({"mine.0.kernix.cu", "mine.1.kernix.cpp", "mine.2.kernix.cu", "mine.2.sm_80.ptx",
                                       "mine.2.sm_80.ptxas"}));
  EXPECT_EQ(Env::Posix().ReadFile(scratch / "out/mine.2.sm_80.ptx").value(), "csm_80;");
}

TEST(BuildDirectoryTest, AFolderThatCannotBeWrittenIsNamed) {
  const ScratchFolder scratch;
  const FakeModule module;
  const absl::Status refused = WriteBuildDirectory(module, scratch.Write("file", "") + "/sub");
  EXPECT_EQ(DescribeError(refused).category, ErrorCategory::kResource);
  EXPECT_THAT(refused.ToString(), HasSubstr("build directory"));
}

TEST(BuildDirectoryTest, AFileThatCannotBeReplacedLeavesNothingBeside) {
  const ScratchFolder scratch;
  FakeModule module;
  scratch.Write("out/mine.so/in_the_way", "");
  EXPECT_FALSE(WriteBuildDirectory(module, scratch / "out").ok());
  EXPECT_THAT(NamesIn(scratch / "out"), ElementsAre("mine.so"));
}

}  // namespace

}  // namespace kernix
