// SPDX-License-Identifier: Apache-2.0
#include "client/load/kernel_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "common/base/strings.h"
#include "kernix/inspection.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;
using ::testing::SizeIs;

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

std::string Bytes(uint64_t value, size_t count) { return {reinterpret_cast<const char*>(&value), count}; }

constexpr uint16_t kPtx = 1;
constexpr uint16_t kMachineCode = 2;
constexpr char kElf[] = "\177ELF    ";

std::string Entry(uint16_t kind, uint32_t architecture, uint64_t flags, const std::string& content) {
  return Bytes(kind, 2) + Bytes(0x101, 2) + Bytes(64, 4) + Bytes(content.size(), 8) + std::string(12, '\0') +
         Bytes(architecture, 4) + Bytes(0, 8) + Bytes(flags, 8) + Bytes(0, 8) + Bytes(0, 8) + content;
}

std::string FatBinary(const std::string& entries) {
  return Bytes(0xba55ed50, 4) + Bytes(1, 2) + Bytes(16, 2) + Bytes(entries.size(), 8) + entries;
}

TEST(FatBinaryTest, TheMachineCodeOfEachUnitAndArchitecture) {
  const std::string first = FatBinary(Entry(kMachineCode, 90, 0x100011, kElf) + Entry(kPtx, 90, 0x11, "12345678"));
  const std::string second = FatBinary(Entry(kMachineCode, 100, 0x1200011, kElf) + Entry(kMachineCode, 75, 1, kElf));
  const std::string section = first + std::string(8, '\0') + second;
  const auto codes = MachineCodeIn(section);
  ASSERT_THAT(codes, IsOk());
  ASSERT_THAT(*codes, SizeIs(3));
  EXPECT_EQ((*codes)[0].architecture, "sm_90a");
  EXPECT_EQ((*codes)[0].bytes, kElf);
  EXPECT_FALSE((*codes)[0].compressed);
  EXPECT_EQ((*codes)[1].architecture, "sm_100f");
  EXPECT_EQ((*codes)[2].architecture, "sm_75");
}

TEST(FatBinaryTest, CompressedMachineCodeIsSeen) {
  const std::string section = FatBinary(Entry(kMachineCode, 90, 0x8011, "(\xb5/\xfd----"));
  const auto codes = MachineCodeIn(section);
  ASSERT_THAT(codes, IsOk());
  ASSERT_THAT(*codes, SizeIs(1));
  EXPECT_TRUE((*codes)[0].compressed);
}

TEST(FatBinaryTest, WhatEndsElsewhereIsDamage) {
  const std::string entry = Entry(kMachineCode, 90, 0, kElf);
  const std::string whole = FatBinary(entry);
  for (size_t size = 16; size < whole.size(); ++size) {
    EXPECT_EQ(MachineCodeIn(std::string_view(whole).substr(0, size)).status().code(), absl::StatusCode::kDataLoss)
        << size;
  }
  for (size_t size = 1; size < entry.size(); ++size) {
    const std::string section = FatBinary(entry.substr(0, size));
    EXPECT_EQ(MachineCodeIn(section).status().code(), absl::StatusCode::kDataLoss) << size;
  }
  std::string endless = whole;
  endless.replace(20, 4, Bytes(0, 4));  // an entry without a header
  EXPECT_EQ(MachineCodeIn(endless).status().code(), absl::StatusCode::kDataLoss);
}

TEST(FatBinaryTest, OtherBytesHaveNone) {
  EXPECT_THAT(MachineCodeIn("").value(), IsEmpty());
  EXPECT_THAT(MachineCodeIn(std::string(1000, 'x')).value(), IsEmpty());
}

}  // namespace
}  // namespace kernix
