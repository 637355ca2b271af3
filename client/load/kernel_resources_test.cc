// SPDX-License-Identifier: Apache-2.0
//
// Occupancy, and what kernels spill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/load/spills.h"
#include "common/base/strings.h"
#include "kernix/inspection.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

KernelResources Kernel(const std::string& architecture, uint64_t registers, uint64_t shared_memory = 0) {
  KernelResources kernel;
  kernel.name = "k()";
  kernel.architecture = architecture;
  kernel.registers = registers;
  kernel.shared_memory = shared_memory;
  return kernel;
}

TEST(OccupancyTest, EachLimitBounds) {
  EXPECT_THAT(Occupancy(Kernel("sm_90", 32), 256), Optional(1.0));
  EXPECT_THAT(Occupancy(Kernel("sm_90a", 32), 32), Optional(0.5));               // 32 blocks of one warp
  EXPECT_THAT(Occupancy(Kernel("sm_90", 255), 256), Optional(0.125));            // registers: 8 warps
  EXPECT_THAT(Occupancy(Kernel("sm_90", 33), 128), Optional(0.75));              // 40 registers of each thread: 12 x 4
  EXPECT_THAT(Occupancy(Kernel("sm_90", 32, 100 * 1024), 256), Optional(0.25));  // shared memory: two blocks
  EXPECT_THAT(Occupancy(Kernel("sm_90", 32), 256, 100 * 1024), Optional(0.25));
  EXPECT_THAT(Occupancy(Kernel("sm_86", 16), 1024), Optional(32.0 / 48));  // one block of 32 warps
  EXPECT_THAT(Occupancy(Kernel("sm_75", 16), 1024), Optional(1.0));
}

TEST(OccupancyTest, WhatDoesNotFitAndWhatIsNotKnown) {
  EXPECT_THAT(Occupancy(Kernel("sm_90", 255), 512), Optional(0.0));
  EXPECT_THAT(Occupancy(Kernel("sm_90", 16), 1025), Optional(0.0));
  EXPECT_THAT(Occupancy(Kernel("sm_90", 16), 0), Optional(0.0));
  EXPECT_THAT(Occupancy(Kernel("sm_90", 16), 32, 228 * 1024), Optional(0.0));
  EXPECT_THAT(Occupancy(Kernel("sm_90", 16), 32, ~uint64_t{0}), Optional(0.0));
  EXPECT_EQ(Occupancy(Kernel("sm_999", 16), 32), std::nullopt);
  EXPECT_EQ(Occupancy(Kernel("", 16), 32), std::nullopt);
}

std::string Instruction(uint32_t operation, uint32_t size) {
  const uint32_t words[4] = {operation, 0, size << 9U, 0};
  return {reinterpret_cast<const char*>(words), sizeof(words)};
}

std::string Repeated(const std::string& instruction, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += instruction;
  return all;
}

std::string Mark(uint32_t kind, uint32_t instruction) {
  const uint32_t words[2] = {kind, instruction * 16};
  return {reinterpret_cast<const char*>(words), sizeof(words)};
}

const std::string kStore = Instruction(0xabc387, 4);     // 4 bytes
const std::string kWideLoad = Instruction(0xabc983, 6);  // 16 bytes
const std::string kOther = Instruction(0xabc123, 4);

TEST(SpillsTest, TheInstructionsThatAreMarked) {
  const auto spills = SpillsOf(StrCat(kStore, kOther, kStore, kWideLoad), StrCat(Mark(1, 2), Mark(1, 3)));
  ASSERT_TRUE(spills.has_value());
  EXPECT_EQ(spills->stored, 4u);
  EXPECT_EQ(spills->loaded, 16u);
}

TEST(SpillsTest, MarksThatPtxasDropped) {
  const auto spills = SpillsOf(StrCat(kStore, kStore, Repeated(kWideLoad, 8192)), Mark(1, 1));
  ASSERT_TRUE(spills.has_value());
  EXPECT_EQ(spills->stored, 4u);
  EXPECT_EQ(spills->loaded, 16u * 8192);
  EXPECT_FALSE(SpillsOf(StrCat(kStore, Repeated(kWideLoad, 8193)), Mark(1, 0)).has_value()) << "an array, too?";
  EXPECT_EQ(SpillsOf(StrCat(kStore, Repeated(kWideLoad, 8191)), Mark(1, 0))->loaded, 0u) << "an array";
}

TEST(SpillsTest, MarksThatFitNothing) {
  const std::string code = StrCat(kStore, kOther, kStore);
  EXPECT_FALSE(SpillsOf(code, "").has_value());
  EXPECT_FALSE(SpillsOf(code, Mark(2, 0)).has_value());
  EXPECT_FALSE(SpillsOf(code, Mark(1, 1)).has_value());
  EXPECT_FALSE(SpillsOf(code, Mark(1, 3)).has_value());
  EXPECT_FALSE(SpillsOf(code, Mark(1, 0).substr(1)).has_value());
  EXPECT_FALSE(SpillsOf(code, StrCat(Mark(1, 2), Mark(1, 0))).has_value());
}

KernelResources Spilling(const std::string& name, uint64_t stores, uint64_t loads) {
  KernelResources kernel = Kernel("sm_90", 255);
  kernel.name = name;
  kernel.spill_stores = stores;
  kernel.spill_loads = loads;
  return kernel;
}

TEST(SpillWarningTest, NamesTheWorstKernels) {
  EXPECT_EQ(SpillWarning("mine", {}), std::nullopt);
  EXPECT_EQ(SpillWarning("mine", {Spilling("none()", 0, 0), Kernel("sm_90", 255)}), std::nullopt);
  const auto one = SpillWarning("mine", {Spilling("none()", 0, 0), Spilling("one()", 4, 8)});
  EXPECT_THAT(one, Optional(AllOf(HasSubstr("module \"mine\""), HasSubstr("one() on sm_90 (4 bytes stored, 8 loaded, "),
                                  HasSubstr("-maxrregcount"), Not(HasSubstr("none()")), Not(HasSubstr("more like")))));
  const auto many = SpillWarning("mine", {Spilling("a()", 1, 0), Spilling("b()", 2, 0), Spilling("c()", 3, 0),
                                          Spilling("d()", 4, 0), Spilling("e()", 5, 0)});
  EXPECT_THAT(many, Optional(AllOf(HasSubstr("in e() on"), HasSubstr("c() on"), HasSubstr(" and 2 more like this."),
                                   Not(HasSubstr("b() on")))));
}

}  // namespace
}  // namespace kernix
