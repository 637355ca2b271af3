// SPDX-License-Identifier: Apache-2.0
#include "client/load/fat_binary.h"

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

// What a section holds: for each unit a header, then entries up to its end. Multiples of 8 bytes.
struct FatBinaryHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_size;
  uint64_t size;  // of all entries
};

struct EntryHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t header_size;
  uint64_t size;  // of what follows the header
  uint32_t compressed_size;
  uint32_t options_offset;
  uint32_t code_version;
  uint32_t architecture;  // 90
  uint64_t name;
  uint64_t flags;
};

constexpr uint32_t kMagic = 0xba55ed50;
constexpr uint16_t kMachineCode = 2;
constexpr uint64_t kArchitectureSpecific = 0x100000;  // sm_90a
constexpr uint64_t kFamilySpecific = 0x200000;        // sm_100f
constexpr size_t kAlignment = 8;

template <typename T>
std::optional<T> ReadAt(std::string_view bytes, size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::string ArchitectureOf(const EntryHeader& entry) {
  const char* suffix = (entry.flags & kArchitectureSpecific) != 0 ? "a"
                       : (entry.flags & kFamilySpecific) != 0     ? "f"
                                                                  : "";
  return StrCat("sm_", entry.architecture, suffix);
}

absl::Status ReadEntries(std::string_view entries, std::vector<MachineCode>& found) {
  while (!entries.empty()) {
    const auto entry = ReadAt<EntryHeader>(entries, 0);
    const bool fits = entry.has_value() && entry->header_size >= sizeof(EntryHeader) &&
                      entry->header_size <= entries.size() && entry->size <= entries.size() - entry->header_size;
    if (!fits) return absl::DataLossError("an entry of the fat binary ends outside of it");
    const std::string_view bytes = entries.substr(entry->header_size, entry->size);
    if (entry->kind == kMachineCode) {
      found.push_back({ArchitectureOf(*entry), bytes, !bytes.starts_with(std::string_view(ELFMAG, SELFMAG))});
    }
    entries.remove_prefix(entry->header_size + entry->size);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<MachineCode>> MachineCodeIn(std::string_view section) {
  std::vector<MachineCode> found;
  size_t at = 0;
  while (const auto header = ReadAt<FatBinaryHeader>(section, at)) {
    if (header->magic != kMagic) {  // between two of them
      at += kAlignment;
      continue;
    }
    const size_t left = section.size() - at;
    if (header->header_size < sizeof(FatBinaryHeader) || header->header_size > left ||
        header->size > left - header->header_size) {
      return absl::DataLossError("a fat binary ends outside its section");
    }
    KERNIX_RETURN_IF_ERROR(ReadEntries(section.substr(at + header->header_size, header->size), found));
    at += header->header_size + header->size;
  }
  return found;
}

}  // namespace kernix
