// SPDX-License-Identifier: Apache-2.0
#include "client/load/artifact_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Bytes(uint64_t value, size_t count) { return {reinterpret_cast<const char*>(&value), count}; }

constexpr uint16_t kPtx = 1;
constexpr uint16_t kMachineCode = 2;
constexpr char kElf[] = "\177ELF    ";

std::string Entry(uint16_t kind, uint32_t architecture, uint64_t flags, const std::string& content) {
  return Bytes(kind, 2) + Bytes(0x101, 2) + Bytes(64, 4) + Bytes(content.size(), 8) + Bytes(0, 12) +
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
