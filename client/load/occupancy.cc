// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "kernix/inspection.h"

namespace kernix {
namespace {

constexpr uint64_t kKiB = 1024;

// What a multiprocessor can hold at once (CUDA C++ Programming Guide, technical specifications per compute capability).
struct Limits {
  std::string_view architecture;  // without the suffix of sm_90a
  uint64_t warps;
  uint64_t blocks;
  uint64_t shared_memory;
  uint64_t reserved;  // of it, for each block, by the system
  uint64_t shared_unit;
};

constexpr Limits kLimits[] = {
    {"sm_70", 64, 32, 96 * kKiB, 0, 256},      {"sm_72", 64, 32, 96 * kKiB, 0, 256},
    {"sm_75", 32, 16, 64 * kKiB, 0, 256},      {"sm_80", 64, 32, 164 * kKiB, kKiB, 128},
    {"sm_86", 48, 16, 100 * kKiB, kKiB, 128},  {"sm_87", 48, 16, 164 * kKiB, kKiB, 128},
    {"sm_89", 48, 24, 100 * kKiB, kKiB, 128},  {"sm_90", 64, 32, 228 * kKiB, kKiB, 128},
    {"sm_100", 64, 32, 228 * kKiB, kKiB, 128}, {"sm_103", 64, 32, 228 * kKiB, kKiB, 128},
    {"sm_110", 48, 24, 228 * kKiB, kKiB, 128}, {"sm_120", 48, 24, 100 * kKiB, kKiB, 128},
    {"sm_121", 48, 24, 100 * kKiB, kKiB, 128},
};

constexpr uint64_t kThreadsOfWarp = 32;
constexpr uint64_t kMostThreads = 1024;  // of a block
// The registers lie in four parts, and a warp has all of its registers in one.
constexpr uint64_t kParts = 4;
constexpr uint64_t kRegistersOfPart = 16384;
constexpr uint64_t kRegisterUnit = 256;

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

const Limits* LimitsOf(std::string_view architecture) {
  while (!architecture.empty() && (architecture.back() == 'a' || architecture.back() == 'f')) {
    architecture.remove_suffix(1);
  }
  const auto* found = std::find_if(std::begin(kLimits), std::end(kLimits),
                                   [&](const Limits& limits) { return limits.architecture == architecture; });
  return found == std::end(kLimits) ? nullptr : found;
}

uint64_t WarpsByRegisters(const Limits& limits, uint64_t registers) {
  if (registers == 0) return limits.warps;
  return kRegistersOfPart / RoundUp(registers * kThreadsOfWarp, kRegisterUnit) * kParts;
}

uint64_t BlocksBySharedMemory(const Limits& limits, uint64_t bytes) {
  const uint64_t needed = RoundUp(bytes + limits.reserved, limits.shared_unit);
  return needed == 0 ? limits.blocks : limits.shared_memory / needed;
}

}  // namespace

std::optional<double> Occupancy(const KernelResources& kernel, uint64_t threads, uint64_t dynamic_shared_memory) {
  const Limits* limits = LimitsOf(kernel.architecture);
  if (limits == nullptr) return std::nullopt;
  if (threads == 0 || threads > kMostThreads || dynamic_shared_memory > limits->shared_memory) return 0;
  const uint64_t warps = RoundUp(threads, kThreadsOfWarp) / kThreadsOfWarp;
  const uint64_t blocks =
      std::min({limits->blocks, limits->warps / warps, WarpsByRegisters(*limits, kernel.registers) / warps,
                BlocksBySharedMemory(*limits, kernel.shared_memory + dynamic_shared_memory)});
  return static_cast<double>(blocks * warps) / static_cast<double>(limits->warps);
}

}  // namespace kernix
