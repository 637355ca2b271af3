// SPDX-License-Identifier: Apache-2.0
#include "client/load/cubin.h"

#include <elf.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "client/load/kernel_name.h"
#include "client/load/spills.h"
#include "common/base/elf_image.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

using Sections = std::map<std::string_view, ElfImage::NamedSection>;

constexpr unsigned char kEntryPoint = 0x10;  // in a symbol's st_other

// Attributes of .nv.info.
constexpr uint8_t kFrameSize = 0x11;
constexpr uint8_t kLargestStack = 0x12;  // with what the functions that are called need
constexpr uint8_t kRegisters = 0x2f;
constexpr uint8_t kCudaVersion = 0x37;
constexpr uint8_t kBarriers = 0x4c;
constexpr uint8_t kAnnotations = 0x55;

constexpr uint32_t kFirstAnnotating = 126;      // from CUDA 12.6 on, each such instruction has one
constexpr uint64_t kSharedForTheSystem = 1024;  // .nv.shared counts it from sm_90 on
constexpr unsigned kFirstCountingIt = 90;

struct Attribute {
  uint8_t id = 0;
  uint16_t value = 0;  // if it has no payload
  std::string_view payload;
};

uint32_t WordAt(std::string_view bytes, size_t offset) {
  uint32_t word = 0;
  if (offset + sizeof(word) <= bytes.size()) std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

// An attribute is a format, an id and two bytes: a value, or the size of the payload that follows.
absl::Status ForEachAttribute(std::string_view info, const std::function<void(const Attribute&)>& use) {
  constexpr uint8_t kHasPayload = 4;
  constexpr size_t kHeader = 4;
  size_t at = 0;
  while (at + kHeader <= info.size()) {
    const uint32_t word = WordAt(info, at);
    const auto value = static_cast<uint16_t>(word >> 16U);
    Attribute attribute{.id = static_cast<uint8_t>(word >> 8U), .value = value, .payload = {}};
    at += kHeader;
    if ((word & 0xffU) == kHasPayload) {
      if (info.size() - at < value) return absl::DataLossError("an attribute of the machine code is cut off");
      attribute.payload = info.substr(at, value);
      at += (value + kHeader - 1) / kHeader * kHeader;
    }
    use(attribute);
  }
  return absl::OkStatus();
}

// Attributes of the whole cubin, by the index of the kernel's symbol.
struct Numbers {
  std::map<uint32_t, uint64_t> registers;
  std::map<uint32_t, uint64_t> frame;
  std::map<uint32_t, uint64_t> largest_stack;
};

absl::StatusOr<Numbers> ReadNumbers(const Sections& sections) {
  Numbers numbers;
  const auto info = sections.find(".nv.info");
  if (info == sections.end()) return numbers;
  KERNIX_RETURN_IF_ERROR(ForEachAttribute(info->second.bytes, [&](const Attribute& attribute) {
    const uint32_t symbol = WordAt(attribute.payload, 0);
    const uint32_t value = WordAt(attribute.payload, sizeof(uint32_t));
    if (attribute.id == kRegisters) numbers.registers[symbol] = value;
    if (attribute.id == kFrameSize) numbers.frame[symbol] = value;
    if (attribute.id == kLargestStack) numbers.largest_stack[symbol] = value;
  }));
  return numbers;
}

std::string_view BytesOf(const Sections& sections, const std::string& name) {
  const auto section = sections.find(name);
  return section == sections.end() ? std::string_view() : section->second.bytes;
}

// Attributes of one kernel.
absl::Status ReadKernel(const Sections& sections, bool has_stack, KernelResources& kernel) {
  bool is_known = !has_stack;  // nothing is spilled without a stack
  std::optional<Spills> spills = Spills{};
  KERNIX_RETURN_IF_ERROR(
      ForEachAttribute(BytesOf(sections, ".nv.info." + kernel.symbol), [&](const Attribute& attribute) {
        if (attribute.id == kBarriers) kernel.barriers = attribute.value;
        if (attribute.id == kCudaVersion && WordAt(attribute.payload, 0) >= kFirstAnnotating) is_known = true;
        if (attribute.id != kAnnotations) return;
        is_known = true;
        spills = SpillsOf(BytesOf(sections, ".text." + kernel.symbol), attribute.payload);
      }));
  if (is_known && spills) {
    kernel.spill_stores = spills->stored;
    kernel.spill_loads = spills->loaded;
  }
  return absl::OkStatus();
}

unsigned NumberOf(const std::string& architecture) {
  const size_t begin = architecture.find('_') + 1;
  size_t end = begin;
  while (end < architecture.size() && std::isdigit(static_cast<unsigned char>(architecture[end])) != 0) ++end;
  unsigned number = 0;
  return absl::SimpleAtoi(ToAbsl(std::string_view(architecture).substr(begin, end - begin)), &number) ? number : 0;
}

// What the sizes and flags of the kernel's sections say.
void ReadSizes(const Sections& sections, KernelResources& kernel) {
  constexpr uint64_t kBarriersShift = 20;  // of the flags of .text, before CUDA 13
  constexpr uint64_t kBarriersMask = 0x7f;
  if (const auto text = sections.find(".text." + kernel.symbol); text != sections.end()) {
    kernel.barriers = (text->second.flags >> kBarriersShift) & kBarriersMask;
  }
  if (const auto shared = sections.find(".nv.shared." + kernel.symbol); shared != sections.end()) {
    const bool counts = NumberOf(kernel.architecture) >= kFirstCountingIt && shared->second.size >= kSharedForTheSystem;
    kernel.shared_memory = shared->second.size - (counts ? kSharedForTheSystem : 0);
  }
  constexpr char kLastBank = '9';
  for (char bank = '0'; bank <= kLastBank; ++bank) {
    const auto constants = sections.find(StrCat(".nv.constant", std::string(1, bank), ".", kernel.symbol));
    if (constants != sections.end()) kernel.constant_memory += constants->second.size;
  }
}

uint64_t ValueOf(const std::map<uint32_t, uint64_t>& values, uint32_t symbol) {
  const auto found = values.find(symbol);
  return found == values.end() ? 0 : found->second;
}

}  // namespace

absl::StatusOr<std::vector<KernelResources>> KernelsInCubin(std::string_view cubin, const std::string& architecture) {
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::ParseCubin(cubin));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<ElfImage::NamedSection> all, image.Sections());
  KERNIX_ASSIGN_OR_RETURN(const std::vector<ElfImage::Symbol> symbols, image.Symbols());
  Sections sections;
  for (const ElfImage::NamedSection& section : all) sections.emplace(section.name, section);
  KERNIX_ASSIGN_OR_RETURN(const Numbers numbers, ReadNumbers(sections));
  std::vector<KernelResources> kernels;
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].type != STT_FUNC || (symbols[i].other & kEntryPoint) == 0) continue;
    KernelResources& kernel = kernels.emplace_back();
    kernel.symbol = symbols[i].name;
    kernel.name = KernelName(kernel.symbol);
    kernel.architecture = architecture;
    kernel.registers = ValueOf(numbers.registers, i);
    kernel.stack_frame = ValueOf(numbers.frame, i);
    ReadSizes(sections, kernel);
    const bool has_stack = kernel.stack_frame > 0 || ValueOf(numbers.largest_stack, i) > 0;
    KERNIX_RETURN_IF_ERROR(ReadKernel(sections, has_stack, kernel));
  }
  return kernels;
}

}  // namespace kernix
