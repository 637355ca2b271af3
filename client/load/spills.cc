// SPDX-License-Identifier: Apache-2.0
#include "client/load/spills.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr size_t kInstruction = 16;  // bytes

struct Mark {
  uint32_t kind;
  uint32_t offset;  // of the instruction
};

constexpr uint32_t kSpill = 1;

// The size of the marks is a number of 16 bits. ptxas drops the marks of a multiple of this many instructions, the last
// ones, if there are more.
constexpr size_t kDropped = (size_t{1} << 16U) / sizeof(Mark);

uint32_t WordAt(std::string_view bytes, size_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

// Nullopt unless the instruction at `offset` accesses local memory.
std::optional<Spills> LocalAccess(std::string_view code, size_t offset) {
  constexpr uint32_t kStoreLocal = 0x387;
  constexpr uint32_t kLoadLocal = 0x983;
  constexpr uint64_t kBytes[] = {1, 1, 2, 2, 4, 8, 16, 0};  // by the three bits that say the size
  if (offset > code.size() || code.size() - offset < kInstruction) return std::nullopt;
  const uint32_t operation = WordAt(code, offset) & 0xfffU;
  const uint64_t bytes = kBytes[(WordAt(code, offset + 8) >> 9U) & 7U];
  if (operation == kStoreLocal) return Spills{.stored = bytes};
  if (operation == kLoadLocal) return Spills{.loaded = bytes};
  return std::nullopt;
}

void Add(const Spills& more, Spills& all) {
  all.stored += more.stored;
  all.loaded += more.loaded;
}

// Adds the spills behind the last mark, if marks were dropped. Accesses to the kernel's own arrays look the same: if
// there are some among those instructions, nobody knows, and this returns nullopt.
std::optional<Spills> WithDropped(std::string_view code, size_t last_mark, Spills spills) {
  Spills rest;
  size_t count = 0;
  for (size_t offset = last_mark + kInstruction; offset < code.size(); offset += kInstruction) {
    const std::optional<Spills> access = LocalAccess(code, offset);
    if (!access) continue;
    Add(*access, rest);
    ++count;
  }
  if (count < kDropped) return spills;
  if (count % kDropped != 0) return std::nullopt;
  Add(rest, spills);
  return spills;
}

}  // namespace

std::optional<Spills> SpillsOf(std::string_view code, std::string_view marks) {
  if (marks.empty() || marks.size() % sizeof(Mark) != 0) return std::nullopt;
  Spills spills;
  size_t last = 0;
  for (size_t at = 0; at < marks.size(); at += sizeof(Mark)) {
    Mark mark;
    std::memcpy(&mark, marks.data() + at, sizeof(mark));
    const std::optional<Spills> access = LocalAccess(code, mark.offset);
    if (mark.kind != kSpill || mark.offset < last || !access) return std::nullopt;
    Add(*access, spills);
    last = mark.offset;
  }
  return WithDropped(code, last, spills);
}

namespace {

constexpr size_t kMostNamed = 3;

uint64_t SpilledBytes(const KernelResources& kernel) {
  return kernel.spill_stores.value_or(0) + kernel.spill_loads.value_or(0);
}

std::string Described(const KernelResources& kernel) {
  return StrCat(kernel.name, " on ", kernel.architecture, " (", kernel.spill_stores.value_or(0), " bytes stored, ",
                kernel.spill_loads.value_or(0), " loaded, ", kernel.registers, " registers)");
}

}  // namespace

std::optional<std::string> SpillWarning(const std::string& name, const std::vector<KernelResources>& kernels) {
  std::vector<KernelResources> spilling;
  std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(spilling),
               [](const KernelResources& kernel) { return SpilledBytes(kernel) > 0; });
  if (spilling.empty()) return std::nullopt;
  std::stable_sort(spilling.begin(), spilling.end(), [](const KernelResources& a, const KernelResources& b) {
    return SpilledBytes(a) > SpilledBytes(b);
  });
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(kMostNamed, spilling.size()); ++i) named.push_back(Described(spilling[i]));
  return StrCat("module \"", name, "\": each thread spills registers to local memory, which is slow, in ",
                absl::StrJoin(named, ", "),
                spilling.size() > kMostNamed ? StrCat(" and ", spilling.size() - kMostNamed, " more like this") : "",
                ". Keep fewer values at once, or let the kernel have more registers (__launch_bounds__, "
                "-maxrregcount).");
}

}  // namespace kernix
