// SPDX-License-Identifier: Apache-2.0
#include "common/base/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/processor.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {

std::optional<SymbolVersion> SymbolVersion::Parse(std::string_view name) {
  const size_t split = name.rfind('_');
  if (split == std::string_view::npos) return std::nullopt;
  SymbolVersion version{std::string(name), std::string(name.substr(0, split)), {}};
  for (const absl::string_view part : absl::StrSplit(ToAbsl(name.substr(split + 1)), '.')) {
    if (!absl::SimpleAtoi(part, &version.number.emplace_back())) return std::nullopt;
  }
  return version;
}

namespace {

absl::Status Damaged(std::string_view what) { return absl::DataLossError(StrCat("ELF: ", what)); }

absl::Status CutOff() { return absl::InvalidArgumentError("the ELF file is truncated"); }

// The structure at `offset`, copied because it may not be aligned.
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

// The string at `offset`; it must end inside the table.
std::optional<std::string_view> StringAt(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return table.substr(offset, end - offset);
}

bool IsElfFor(Elf64_Half machine, const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == machine &&
         header.e_shentsize == sizeof(Elf64_Shdr);
}

bool IsSharedObject(const Elf64_Ehdr& header) {
  return IsElfFor(kElfMachine, header) && header.e_type == ET_DYN && header.e_phentsize == sizeof(Elf64_Phdr);
}

bool IsExported(const Elf64_Sym& symbol) {
  const unsigned binding = ELF64_ST_BIND(symbol.st_info);
  const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE) &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

// A version that a shared object requires.
struct NeededVersion {
  std::string name;
  std::string library;
  uint16_t index = 0;  // by which symbols refer to it
};

// Reads the chain of Elf64_Vernaux that belongs to one Elf64_Verneed.
absl::Status ReadNeeds(std::string_view table, std::string_view strings, std::string_view library, uint64_t offset,
                       unsigned count, std::vector<NeededVersion>& versions) {
  for (unsigned i = 0; i < count; ++i) {
    const auto need = ReadAt<Elf64_Vernaux>(table, offset);
    // A chain that loops or crosses another one would otherwise cost far more time than the file's size warrants.
    const bool too_many = versions.size() >= table.size() / sizeof(Elf64_Vernaux);
    if (!need.has_value() || too_many) return Damaged("a version requirement lies outside its section");
    const std::optional<std::string_view> name = StringAt(strings, need->vna_name);
    if (!name.has_value()) return Damaged("a version's name lies outside its string table");
    versions.push_back({std::string(*name), std::string(library), need->vna_other});
    offset += need->vna_next;
  }
  return absl::OkStatus();
}

// Reads the `count` Elf64_Verneed of a section.
absl::StatusOr<std::vector<NeededVersion>> ReadAllNeeds(std::string_view table, std::string_view strings,
                                                        unsigned count) {
  std::vector<NeededVersion> versions;
  uint64_t offset = 0;
  for (unsigned i = 0; i < count; ++i) {
    const auto file = ReadAt<Elf64_Verneed>(table, offset);
    if (!file.has_value()) return Damaged("a version requirement lies outside its section");
    const std::optional<std::string_view> library = StringAt(strings, file->vn_file);
    if (!library.has_value()) return Damaged("a library's name lies outside its string table");
    KERNIX_RETURN_IF_ERROR(ReadNeeds(table, strings, *library, offset + file->vn_aux, file->vn_cnt, versions));
    if (file->vn_next == 0) break;
    offset += file->vn_next;
  }
  return versions;
}

// The versions that a shared object defines, by the index with which symbols refer to them. Not its own name.
absl::StatusOr<std::map<uint16_t, std::string>> ReadDefinitions(std::string_view table, std::string_view strings) {
  std::map<uint16_t, std::string> versions;
  for (uint64_t offset = 0;;) {
    const auto definition = ReadAt<Elf64_Verdef>(table, offset);
    if (!definition.has_value()) return Damaged("a version lies outside its section");
    const auto name = ReadAt<Elf64_Verdaux>(table, offset + definition->vd_aux);
    if (!name.has_value()) return Damaged("a version lies outside its section");
    const std::optional<std::string_view> text = StringAt(strings, name->vda_name);
    if (!text.has_value()) return Damaged("a version's name lies outside its string table");
    const bool is_own_name = (definition->vd_flags & VER_FLG_BASE) != 0;
    if (!is_own_name) versions.try_emplace(definition->vd_ndx, *text);
    // A later one lies further on, so that this ends.
    if (definition->vd_next == 0) return versions;
    offset += definition->vd_next;
  }
}

bool IsRuntimeFamily(std::string_view family) {
  return family == "GLIBC" || family == "GLIBCXX" || family == "CXXABI" || family == "GCC";
}

}  // namespace

absl::StatusOr<ElfImage> ElfImage::Parse(std::string_view bytes) {
  const auto header = ReadAt<Elf64_Ehdr>(bytes, 0);
  if (!header.has_value() || !IsSharedObject(*header)) {
    return absl::InvalidArgumentError(StrCat("not an ELF shared object for ", kProcessor));
  }
  KERNIX_ASSIGN_OR_RETURN(ElfImage image, WithSections(bytes, *header));
  KERNIX_RETURN_IF_ERROR(image.ReadSegments(*header));
  return image;
}

absl::StatusOr<ElfImage> ElfImage::ParseObject(std::string_view bytes) {
  const auto header = ReadAt<Elf64_Ehdr>(bytes, 0);
  if (!header.has_value() || !IsElfFor(kElfMachine, *header) || header->e_type != ET_REL) {
    return absl::InvalidArgumentError(StrCat("not an ELF object for a linker for ", kProcessor));
  }
  return WithSections(bytes, *header);
}

absl::StatusOr<ElfImage> ElfImage::ParseCubin(std::string_view bytes) {
  const auto header = ReadAt<Elf64_Ehdr>(bytes, 0);
  if (!header.has_value() || !IsElfFor(EM_CUDA, *header)) {
    return absl::InvalidArgumentError("not an ELF file for an NVIDIA GPU");
  }
  return WithSections(bytes, *header);
}

absl::StatusOr<ElfImage> ElfImage::WithSections(std::string_view bytes, const Elf64_Ehdr& header) {
  ElfImage image;
  image.bytes_ = bytes;
  image.names_ = header.e_shstrndx;
  KERNIX_RETURN_IF_ERROR(image.ReadSections(header));
  return image;
}

absl::Status ElfImage::ReadSections(const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = ReadAt<Elf64_Shdr>(bytes_, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section.has_value()) return CutOff();
    const bool empty = section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL;
    const auto content = Slice(bytes_, section->sh_offset, empty ? 0 : section->sh_size);
    if (!empty && !content.has_value()) return CutOff();
    sections_.push_back({.name = section->sh_name,
                         .type = section->sh_type,
                         .link = section->sh_link,
                         .count = section->sh_info,
                         .size = section->sh_size,
                         .flags = section->sh_flags,
                         .bytes = content.value_or("")});
  }
  return absl::OkStatus();
}

absl::Status ElfImage::ReadSegments(const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = ReadAt<Elf64_Phdr>(bytes_, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment.has_value()) return CutOff();
    segments_.push_back(*segment);
  }
  return absl::OkStatus();
}

const ElfImage::Section* ElfImage::FindSection(uint32_t type) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [type](const Section& section) { return section.type == type; });
  return found == sections_.end() ? nullptr : &*found;
}

absl::StatusOr<std::string_view> ElfImage::Strings(uint32_t section) const {
  if (section >= sections_.size() || sections_[section].type != SHT_STRTAB) {
    return Damaged("a section has no string table");
  }
  return sections_[section].bytes;
}

absl::StatusOr<std::string_view> ElfImage::NameOf(const Section& section, std::string_view names) {
  const std::optional<std::string_view> name = StringAt(names, section.name);
  if (!name.has_value()) return Damaged("a section's name lies outside its string table");
  return *name;
}

// The bytes from `address` to the end of its segment; empty if no segment is loaded there.
std::string_view ElfImage::FromAddress(uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_) {
    const uint64_t offset = address - segment.p_vaddr;
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr || offset >= segment.p_filesz) continue;
    const auto content = Slice(bytes_, segment.p_offset, segment.p_filesz);
    return content.has_value() ? content->substr(offset) : "";
  }
  return "";
}

absl::StatusOr<absl::flat_hash_set<std::string>> ElfImage::ExportedSymbols() const {
  absl::flat_hash_set<std::string> names;
  const Section* symbols = FindSection(SHT_DYNSYM);
  if (symbols == nullptr) return names;
  KERNIX_ASSIGN_OR_RETURN(const std::string_view strings, Strings(symbols->link));
  for (uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= symbols->bytes.size(); offset += sizeof(Elf64_Sym)) {
    const auto symbol = ReadAt<Elf64_Sym>(symbols->bytes, offset);
    if (!IsExported(*symbol)) continue;
    const std::optional<std::string_view> name = StringAt(strings, symbol->st_name);
    if (!name.has_value()) return Damaged("a symbol's name lies outside its string table");
    names.emplace(*name);
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> ElfImage::NeededVersions() const {
  std::vector<std::string> names;
  const Section* needs = FindSection(SHT_GNU_verneed);
  if (needs == nullptr) return names;
  KERNIX_ASSIGN_OR_RETURN(const std::string_view strings, Strings(needs->link));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<NeededVersion> versions, ReadAllNeeds(needs->bytes, strings, needs->count));
  for (const NeededVersion& version : versions) names.push_back(version.name);
  return names;
}

absl::StatusOr<std::vector<ElfImage::Import>> ElfImage::Imports() const {
  std::vector<Import> imports;
  const Section* symbols = FindSection(SHT_DYNSYM);
  if (symbols == nullptr) return imports;
  KERNIX_ASSIGN_OR_RETURN(const std::string_view strings, Strings(symbols->link));
  const Section* needs = FindSection(SHT_GNU_verneed);
  const Section* indices = FindSection(SHT_GNU_versym);
  std::map<uint16_t, NeededVersion> versions;  // by index
  if (needs != nullptr && indices != nullptr) {
    KERNIX_ASSIGN_OR_RETURN(const std::string_view names, Strings(needs->link));
    KERNIX_ASSIGN_OR_RETURN(std::vector<NeededVersion> all, ReadAllNeeds(needs->bytes, names, needs->count));
    for (NeededVersion& version : all) versions.try_emplace(version.index, std::move(version));
  }
  for (uint64_t i = 1; (i + 1) * sizeof(Elf64_Sym) <= symbols->bytes.size(); ++i) {
    const auto symbol = ReadAt<Elf64_Sym>(symbols->bytes, i * sizeof(Elf64_Sym));
    if (symbol->st_shndx != SHN_UNDEF) continue;
    const std::optional<std::string_view> name = StringAt(strings, symbol->st_name);
    if (!name.has_value()) return Damaged("a symbol's name lies outside its string table");
    Import import{.name = std::string(*name), .type = static_cast<unsigned char>(ELF64_ST_TYPE(symbol->st_info))};
    const auto index = indices == nullptr ? std::nullopt : ReadAt<uint16_t>(indices->bytes, i * sizeof(uint16_t));
    if (const auto version = versions.find(index.value_or(VER_NDX_LOCAL)); version != versions.end()) {
      import.version = version->second.name;
      import.library = version->second.library;
    }
    imports.push_back(std::move(import));
  }
  return imports;
}

absl::StatusOr<std::string> ElfImage::OwnName() const {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, DynamicTexts(DT_SONAME));
  if (names.empty()) return absl::NotFoundError("the shared object has no name of its own");
  return names.front();
}

absl::StatusOr<std::vector<ElfImage::Import>> ElfImage::OffersOf(
    const absl::flat_hash_set<std::string_view>& names) const {
  KERNIX_ASSIGN_OR_RETURN(const std::string own_name, OwnName());
  std::vector<Import> offers;
  const Section* symbols = FindSection(SHT_DYNSYM);
  const Section* definitions = FindSection(SHT_GNU_verdef);
  const Section* indices = FindSection(SHT_GNU_versym);
  if (symbols == nullptr || definitions == nullptr || indices == nullptr) {
    return absl::NotFoundError("the shared object has no versions");
  }
  KERNIX_ASSIGN_OR_RETURN(const std::string_view strings, Strings(symbols->link));
  KERNIX_ASSIGN_OR_RETURN(const std::string_view version_strings, Strings(definitions->link));
  KERNIX_ASSIGN_OR_RETURN(const auto versions, ReadDefinitions(definitions->bytes, version_strings));
  for (uint64_t i = 1; (i + 1) * sizeof(Elf64_Sym) <= symbols->bytes.size(); ++i) {
    const auto symbol = ReadAt<Elf64_Sym>(symbols->bytes, i * sizeof(Elf64_Sym));
    const auto index = ReadAt<uint16_t>(indices->bytes, i * sizeof(uint16_t));
    if (!index.has_value()) return Damaged("a symbol has no version index");
    if (!IsExported(*symbol)) continue;
    const std::optional<std::string_view> name = StringAt(strings, symbol->st_name);
    if (!name.has_value()) return Damaged("a symbol's name lies outside its string table");
    const auto version = versions.find(*index);  // not there if it is hidden, which is a bit of the index
    if (version == versions.end() || !names.contains(*name)) continue;
    offers.push_back({.name = std::string(*name),
                      .type = static_cast<unsigned char>(ELF64_ST_TYPE(symbol->st_info)),
                      .version = version->second,
                      .library = own_name});
  }
  std::sort(offers.begin(), offers.end());
  return offers;
}

absl::StatusOr<std::vector<std::string>> ElfImage::NeededLibraries() const { return DynamicTexts(DT_NEEDED); }

absl::StatusOr<std::vector<std::string>> ElfImage::DynamicTexts(int64_t tag) const {
  std::vector<uint64_t> places;  // in the strings
  std::string_view strings;
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = ReadAt<Elf64_Dyn>(bytes_, segment.p_offset + at);
      if (!entry.has_value() || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_STRTAB) strings = FromAddress(entry->d_un.d_ptr);
      if (entry->d_tag == tag) places.push_back(entry->d_un.d_val);
    }
  }
  std::vector<std::string> texts;
  for (const uint64_t place : places) {
    const std::optional<std::string_view> text = StringAt(strings, place);
    if (!text.has_value()) return Damaged("a library's name lies outside its string table");
    texts.emplace_back(*text);
  }
  return texts;
}

absl::StatusOr<std::string_view> ElfImage::SectionNamed(std::string_view wanted) const {
  if (sections_.empty()) return absl::NotFoundError("the ELF file has no sections");
  KERNIX_ASSIGN_OR_RETURN(const std::string_view names, Strings(names_));
  for (const Section& section : sections_) {
    KERNIX_ASSIGN_OR_RETURN(const std::string_view name, NameOf(section, names));
    if (section.type != SHT_NOBITS && name == wanted) return section.bytes;
  }
  return absl::NotFoundError(StrCat("the ELF file has no section ", wanted));
}

absl::StatusOr<std::vector<ElfImage::NamedSection>> ElfImage::Sections() const {
  std::vector<NamedSection> all;
  if (sections_.empty()) return all;
  KERNIX_ASSIGN_OR_RETURN(const std::string_view names, Strings(names_));
  for (const Section& section : sections_) {
    KERNIX_ASSIGN_OR_RETURN(const std::string_view name, NameOf(section, names));
    all.push_back({.name = name, .size = section.size, .flags = section.flags, .bytes = section.bytes});
  }
  return all;
}

absl::StatusOr<std::vector<ElfImage::Symbol>> ElfImage::Symbols() const {
  std::vector<Symbol> symbols;
  const Section* table = FindSection(SHT_SYMTAB);
  if (table == nullptr) return symbols;
  KERNIX_ASSIGN_OR_RETURN(const std::string_view strings, Strings(table->link));
  for (uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= table->bytes.size(); offset += sizeof(Elf64_Sym)) {
    const auto symbol = ReadAt<Elf64_Sym>(table->bytes, offset);
    const std::optional<std::string_view> name = StringAt(strings, symbol->st_name);
    if (!name.has_value()) return Damaged("a symbol's name lies outside its string table");
    symbols.push_back({.name = *name,
                       .type = static_cast<unsigned char>(ELF64_ST_TYPE(symbol->st_info)),
                       .other = symbol->st_other,
                       .is_local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL,
                       .is_defined = symbol->st_shndx != SHN_UNDEF});
  }
  return symbols;
}

// Appends the content, the names with one more, and the table with one more entry; then the header names that table.
// The old names and table remain as bytes that nothing refers to.
absl::Status AddSection(std::string_view name, std::string_view content, std::string& object) {
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(object));
  if (image.SectionNamed(name).ok()) return Damaged(StrCat("there already is a section ", name));
  Elf64_Ehdr header = *ReadAt<Elf64_Ehdr>(object, 0);
  const auto old_table = Slice(object, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
  // With more sections than the header's field can count, the number stands elsewhere.
  if (!old_table.has_value() || header.e_shstrndx >= header.e_shnum || header.e_shnum + 1 >= SHN_LORESERVE) {
    return Damaged("the section table cannot be extended");
  }
  std::vector<Elf64_Shdr> table(header.e_shnum + 1);
  std::memcpy(table.data(), old_table->data(), old_table->size());
  Elf64_Shdr& names = table[header.e_shstrndx];
  const auto old_names = Slice(object, names.sh_offset, names.sh_size);
  if (!old_names.has_value()) return Damaged("the section names lie outside the file");
  const std::string new_names = StrCat(*old_names, name, std::string_view("\0", 1));

  Elf64_Shdr& added = table.back();
  added = {};
  added.sh_type = SHT_PROGBITS;
  added.sh_name = static_cast<uint32_t>(old_names->size());
  added.sh_addralign = 1;
  added.sh_offset = object.size();
  added.sh_size = content.size();
  object += content;

  names.sh_offset = object.size();
  names.sh_size = new_names.size();
  object += new_names;

  object.append(-object.size() % alignof(Elf64_Shdr), '\0');
  header.e_shoff = object.size();
  header.e_shnum = static_cast<Elf64_Half>(table.size());
  object.append(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(Elf64_Shdr));
  std::memcpy(object.data(), &header, sizeof(header));
  return absl::OkStatus();
}

std::vector<std::string> NewestRuntimeVersions(const std::vector<std::string>& versions) {
  std::map<std::string, SymbolVersion> newest;  // by family
  for (const std::string& name : versions) {
    const std::optional<SymbolVersion> version = SymbolVersion::Parse(name);
    if (!version.has_value() || !IsRuntimeFamily(version->family)) continue;
    SymbolVersion& known = newest.try_emplace(version->family, *version).first->second;
    if (known.number < version->number) known = *version;
  }
  std::vector<std::string> names;
  for (const auto& [family, version] : newest) names.push_back(version.name);
  return names;
}

}  // namespace kernix
