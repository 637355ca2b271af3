// SPDX-License-Identifier: Apache-2.0
//
// A parser for ELF shared objects, and for the machine code of GPUs, which is ELF, too. It checks the bounds of every
// read, because a compiler may have produced the file from a hostile user's source.
#pragma once

#include <elf.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kernix {

// The version of a symbol, such as "GLIBCXX_3.4.30".
struct SymbolVersion {
  std::string name;         // "GLIBCXX_3.4.30"
  std::string family;       // "GLIBCXX"
  std::vector<int> number;  // 3, 4, 30

  // Returns nullopt for a name that does not end with a number, such as "GLIBC_PRIVATE".
  static std::optional<SymbolVersion> Parse(std::string_view name);
};

class ElfImage {
 public:
  struct NamedSection {
    std::string_view name;
    uint64_t size = 0;  // that of `bytes`, unless the file has no bytes of it (as for .bss)
    uint64_t flags = 0;
    std::string_view bytes;
  };

  struct Symbol {
    std::string_view name;
    unsigned char type = 0;   // STT_FUNC, ...
    unsigned char other = 0;  // what the machine's ABI says about it
    bool is_local = false;
    bool is_defined = false;
  };

  // A symbol that the loader finds in another library, or that such a library has.
  struct Import {
    std::string name;
    unsigned char type = 0;  // STT_FUNC, ...
    std::string version;     // empty: any
    std::string library;     // that has this version; empty without a version

    auto operator<=>(const Import&) const = default;
  };

  // A view of `bytes`, which must outlive it. Returns kInvalidArgument unless `bytes` is a shared object for this
  // processor.
  static absl::StatusOr<ElfImage> Parse(std::string_view bytes);

  // The same for an object for the linker. Only Sections(), Symbols() and SectionNamed() make sense for it.
  static absl::StatusOr<ElfImage> ParseObject(std::string_view bytes);

  // The same for the machine code of an NVIDIA GPU (a "cubin"). Only Sections(), Symbols() and SectionNamed() make
  // sense for it.
  static absl::StatusOr<ElfImage> ParseCubin(std::string_view bytes);

  // The names of the symbols that dlsym(3) finds. This function and those below return kDataLoss if the tables are
  // inconsistent.
  absl::StatusOr<absl::flat_hash_set<std::string>> ExportedSymbols() const;

  // All versions that the object requires ("GLIBC_2.34", "GLIBCXX_3.4.30", ...), in file order.
  absl::StatusOr<std::vector<std::string>> NeededVersions() const;

  // The object's imports, in the order of its table.
  absl::StatusOr<std::vector<Import>> Imports() const;

  // The object's own name (its DT_SONAME entry). kNotFound if it has none.
  absl::StatusOr<std::string> OwnName() const;

  // What another object imports that is linked with this one and needs all of `names`: those that this object has, in
  // their default versions, sorted. Leaves out what has no version. kNotFound if the
  // object has no name of its own, or no versions.
  absl::StatusOr<std::vector<Import>> OffersOf(const absl::flat_hash_set<std::string_view>& names) const;

  // The shared libraries that the object asks the loader for (its DT_NEEDED entries), in order.
  absl::StatusOr<std::vector<std::string>> NeededLibraries() const;

  // The content of the first section with that name, which points into the image. Returns kNotFound if there is none.
  absl::StatusOr<std::string_view> SectionNamed(std::string_view name) const;

  // All sections, in file order.
  absl::StatusOr<std::vector<NamedSection>> Sections() const;

  // The symbols of the full symbol table (not of the dynamic one), by index; none if there is no such table.
  absl::StatusOr<std::vector<Symbol>> Symbols() const;

 private:
  struct Section {
    uint32_t name = 0;
    uint32_t type = 0;
    uint32_t link = 0;  // index of the section that holds its strings
    uint32_t count = 0;
    uint64_t size = 0;
    uint64_t flags = 0;
    std::string_view bytes;
  };

  static absl::StatusOr<ElfImage> WithSections(std::string_view bytes, const Elf64_Ehdr& header);
  absl::Status ReadSections(const Elf64_Ehdr& header);
  absl::Status ReadSegments(const Elf64_Ehdr& header);
  const Section* FindSection(uint32_t type) const;
  absl::StatusOr<std::string_view> Strings(uint32_t section) const;
  static absl::StatusOr<std::string_view> NameOf(const Section& section, std::string_view names);
  std::string_view FromAddress(uint64_t address) const;
  // The texts of the dynamic section's entries with this tag, in order.
  absl::StatusOr<std::vector<std::string>> DynamicTexts(int64_t tag) const;

  std::string_view bytes_;
  std::vector<Section> sections_;
  std::vector<Elf64_Phdr> segments_;
  uint32_t names_ = 0;  // index of the section that holds the section names
};

// Adds a section to `object`, a shared object for this processor. No loader maps it, and linkers and debuggers ignore
// it. Returns kInvalidArgument or kDataLoss, and leaves `object` alone, if it is not such an object, its section table
// is damaged, or it has a section of that name.
absl::Status AddSection(std::string_view name, std::string_view content, std::string& object);

// The newest version of each family of the C and C++ runtime, sorted. A family is the part before the last "_".
std::vector<std::string> NewestRuntimeVersions(const std::vector<std::string>& versions);

}  // namespace kernix
