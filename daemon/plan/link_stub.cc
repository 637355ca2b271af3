// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/link_stub.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/processor.h"

namespace kernix::build {
namespace {

// The sections, by their numbers in the file.
enum Section : uint32_t { kNone, kSymbols, kStrings, kIndices, kVersions, kDynamic, kCode, kNames, kSections };

// The version of a symbol: 0 and 1 mean that it has none, and that it is the library's own name.
constexpr uint16_t kLibraryVersion = 1;

template <typename Structure>
void Append(const Structure& structure, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&structure), sizeof(structure));
}

// Adds a string to a table of strings, and returns its place there.
uint32_t AddString(std::string_view text, std::string& table) {
  const auto place = static_cast<uint32_t>(table.size());
  table += text;
  table += '\0';
  return place;
}

// The hash of a version's name, as the ELF specification defines it.
uint32_t ElfHash(std::string_view name) {
  uint32_t hash = 0;
  for (const unsigned char c : name) {
    hash = (hash << 4) + c;
    const uint32_t high = hash & 0xf0000000u;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  return hash;
}

class Writer {
 public:
  Writer(std::string_view library, const std::vector<ElfImage::Import>& imports) : names_({std::string(library)}) {
    Append(Elf64_Sym{}, symbols_);
    Append(uint16_t{0}, indices_);
    for (const ElfImage::Import& import : imports) {
      if (import.library == library) AddSymbol(import);
    }
  }

  std::string Write() && {
    const uint32_t library = AddVersions();
    // Linkers refuse a table of versions that has only the library's name.
    const auto if_versioned = [&](uint32_t type) { return names_.size() > 1 ? type : uint32_t{SHT_NULL}; };
    const Elf64_Dyn dynamic[] = {{DT_SONAME, {library}}, {DT_NULL, {0}}};
    Add({.sh_type = SHT_DYNSYM, .sh_link = kStrings, .sh_info = 1, .sh_entsize = sizeof(Elf64_Sym)}, ".dynsym",
        symbols_);
    Add({.sh_type = SHT_STRTAB}, ".dynstr", strings_);
    Add({.sh_type = if_versioned(SHT_GNU_versym), .sh_link = kSymbols, .sh_entsize = sizeof(uint16_t)}, ".gnu.version",
        indices_);
    Add({.sh_type = if_versioned(SHT_GNU_verdef), .sh_link = kStrings, .sh_info = static_cast<uint32_t>(names_.size())},
        ".gnu.version_d", versions_);
    Add({.sh_type = SHT_DYNAMIC, .sh_link = kStrings, .sh_entsize = sizeof(Elf64_Dyn)}, ".dynamic",
        {reinterpret_cast<const char*>(dynamic), sizeof(dynamic)});
    Add({.sh_type = SHT_NOBITS, .sh_flags = SHF_EXECINSTR}, ".text", "");
    const uint32_t own_name = AddString(".shstrtab", section_names_);
    Put({.sh_name = own_name, .sh_type = SHT_STRTAB}, section_names_);
    return Finish();
  }

 private:
  void AddSymbol(const ElfImage::Import& import) {
    auto version = std::find(names_.begin() + 1, names_.end(), import.version);
    if (version == names_.end()) version = names_.insert(version, import.version);
    Elf64_Sym symbol{};
    symbol.st_name = AddString(import.name, strings_);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, import.type);
    symbol.st_shndx = kCode;
    Append(symbol, symbols_);
    Append(static_cast<uint16_t>(kLibraryVersion + (version - names_.begin())), indices_);
  }

  // The first one is the library's name. Returns its place in the strings.
  uint32_t AddVersions() {
    uint32_t library = 0;
    for (size_t i = 0; i < names_.size(); ++i) {
      const bool last = i + 1 == names_.size();
      const uint32_t name = AddString(names_[i], strings_);
      if (i == 0) library = name;
      Append(Elf64_Verdef{.vd_version = VER_DEF_CURRENT,
                          .vd_flags = static_cast<Elf64_Half>(i == 0 ? VER_FLG_BASE : 0),
                          .vd_ndx = static_cast<Elf64_Half>(kLibraryVersion + i),
                          .vd_cnt = 1,
                          .vd_hash = ElfHash(names_[i]),
                          .vd_aux = sizeof(Elf64_Verdef),
                          .vd_next = static_cast<Elf64_Word>(last ? 0 : sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux))},
             versions_);
      Append(Elf64_Verdaux{.vda_name = name, .vda_next = 0}, versions_);
    }
    return library;
  }

  void Add(Elf64_Shdr header, std::string_view name, std::string_view content) {
    header.sh_name = AddString(name, section_names_);
    header.sh_flags |= SHF_ALLOC;
    Put(header, content);
  }

  void Put(Elf64_Shdr header, std::string_view content) {
    Align();
    header.sh_offset = bytes_.size();
    header.sh_size = content.size();
    header.sh_addralign = alignof(uint64_t);
    bytes_ += content;
    headers_.push_back(header);
  }

  void Align() { bytes_.append(-bytes_.size() % alignof(uint64_t), '\0'); }

  std::string Finish() {
    Align();
    Elf64_Ehdr header{};
    std::copy_n(ELFMAG, SELFMAG, header.e_ident);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = kElfMachine;
    header.e_version = EV_CURRENT;
    header.e_shoff = bytes_.size();
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = kSections;
    header.e_shstrndx = kNames;
    for (const Elf64_Shdr& section : headers_) Append(section, bytes_);
    bytes_.replace(0, sizeof(header), reinterpret_cast<const char*>(&header), sizeof(header));
    return std::move(bytes_);
  }

  std::vector<std::string> names_;  // the library's, then those of versions
  std::string symbols_;
  std::string strings_ = std::string(1, '\0');
  std::string indices_;  // of each symbol's version
  std::string versions_;
  std::string section_names_ = std::string(1, '\0');
  std::vector<Elf64_Shdr> headers_ = {{}};
  std::string bytes_ = std::string(sizeof(Elf64_Ehdr), '\0');
};

}  // namespace

std::string LinkStub(std::string_view library, const std::vector<ElfImage::Import>& imports) {
  return Writer(library, imports).Write();
}

}  // namespace kernix::build
