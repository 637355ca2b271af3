// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

absl::Status Damaged(std::string_view what) { return absl::DataLossError(StrCat("ELF: ", what)); }

// The structure at `offset`. Copied, since nothing says that it is aligned.
template <typename T>
std::optional<T> ReadAt(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::optional<std::string_view> Slice(std::string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.substr(offset, size);
}

// A string with its end inside the table.
std::optional<std::string> StringAt(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(table.substr(offset, end - offset));
}

bool IsSharedObject(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == EM_X86_64 && header.e_type == ET_DYN &&
         header.e_shentsize == sizeof(Elf64_Shdr);
}

bool IsExported(const Elf64_Sym& symbol) {
  const unsigned binding = ELF64_ST_BIND(symbol.st_info);
  const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE) &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

// The chain of Elf64_Vernaux that one Elf64_Verneed leads.
absl::Status ReadNeeds(std::string_view table, std::string_view strings, uint64_t offset, unsigned count,
                       std::vector<std::string>& names) {
  for (unsigned i = 0; i < count; ++i) {
    const auto need = ReadAt<Elf64_Vernaux>(table, offset);
    // Chains that run in circles or across each other would otherwise cost far more than the file's size.
    const bool too_many = names.size() >= table.size() / sizeof(Elf64_Vernaux);
    if (!need.has_value() || too_many) return Damaged("a version need lies outside its section");
    std::optional<std::string> name = StringAt(strings, need->vna_name);
    if (!name.has_value()) return Damaged("a version's name lies outside its string table");
    names.push_back(*std::move(name));
    offset += need->vna_next;
  }
  return absl::OkStatus();
}

std::vector<int> Numbers(std::string_view version) {
  std::vector<int> numbers;
  for (absl::string_view part : absl::StrSplit(ToAbsl(version), '.')) {
    int number = 0;
    if (!absl::SimpleAtoi(part, &number)) number = -1;  // "PRIVATE" is older than any number
    numbers.push_back(number);
  }
  return numbers;
}

bool IsRuntimeFamily(std::string_view family) { return family == "GLIBC" || family == "GLIBCXX" || family == "CXXABI"; }

}  // namespace

absl::StatusOr<ElfImage> ElfImage::Parse(std::string_view bytes) {
  const auto header = ReadAt<Elf64_Ehdr>(bytes, 0);
  if (!header.has_value() || !IsSharedObject(*header)) {
    return absl::InvalidArgumentError("not an ELF shared object for x86-64");
  }
  ElfImage image;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto section = ReadAt<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section.has_value()) return absl::InvalidArgumentError("an ELF file that was cut off");
    const bool empty = section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL;
    const auto content = Slice(bytes, section->sh_offset, empty ? 0 : section->sh_size);
    if (!empty && !content.has_value()) return absl::InvalidArgumentError("an ELF file that was cut off");
    image.sections_.push_back({section->sh_type, section->sh_link, section->sh_info, content.value_or("")});
  }
  return image;
}

const ElfImage::Section* ElfImage::FindSection(uint32_t type) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [type](const Section& section) { return section.type == type; });
  return found == sections_.end() ? nullptr : &*found;
}

absl::StatusOr<std::string_view> ElfImage::Strings(const Section& section) const {
  if (section.link >= sections_.size() || sections_[section.link].type != SHT_STRTAB) {
    return Damaged("a section without its string table");
  }
  return sections_[section.link].bytes;
}

absl::StatusOr<absl::flat_hash_set<std::string>> ElfImage::ExportedSymbols() const {
  absl::flat_hash_set<std::string> names;
  const Section* symbols = FindSection(SHT_DYNSYM);
  if (symbols == nullptr) return names;
  KERNIX_ASSIGN_OR_RETURN(const std::string_view strings, Strings(*symbols));
  for (uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= symbols->bytes.size(); offset += sizeof(Elf64_Sym)) {
    const auto symbol = ReadAt<Elf64_Sym>(symbols->bytes, offset);
    if (!IsExported(*symbol)) continue;
    std::optional<std::string> name = StringAt(strings, symbol->st_name);
    if (!name.has_value()) return Damaged("a symbol's name lies outside its string table");
    names.insert(*std::move(name));
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> ElfImage::NeededVersions() const {
  std::vector<std::string> names;
  const Section* needs = FindSection(SHT_GNU_verneed);
  if (needs == nullptr) return names;
  KERNIX_ASSIGN_OR_RETURN(const std::string_view strings, Strings(*needs));
  uint64_t offset = 0;
  for (unsigned i = 0; i < needs->count; ++i) {
    const auto file = ReadAt<Elf64_Verneed>(needs->bytes, offset);
    if (!file.has_value()) return Damaged("a version need lies outside its section");
    KERNIX_RETURN_IF_ERROR(ReadNeeds(needs->bytes, strings, offset + file->vn_aux, file->vn_cnt, names));
    if (file->vn_next == 0) break;
    offset += file->vn_next;
  }
  return names;
}

std::vector<std::string> NewestRuntimeVersions(const std::vector<std::string>& versions) {
  std::map<std::string, std::string> newest;  // by family
  for (const std::string& version : versions) {
    const size_t split = version.rfind('_');
    if (split == std::string::npos || !IsRuntimeFamily(std::string_view(version).substr(0, split))) continue;
    std::string& known = newest[version.substr(0, split)];
    const std::string number = version.substr(split + 1);
    if (known.empty() || Numbers(known) < Numbers(number)) known = number;
  }
  std::vector<std::string> result;
  for (const auto& [family, number] : newest) result.push_back(StrCat(family, "_", number));
  return result;
}

}  // namespace kernix::build
