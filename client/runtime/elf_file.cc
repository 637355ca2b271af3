// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"

namespace kernix {
namespace {

absl::Status Damaged(std::string_view what) {
  return absl::InvalidArgumentError(StrCat("not a usable ELF file: ", what));
}

// The object at `offset`, copied, since nothing in a file is aligned for certain.
template <typename T>
std::optional<T> ReadAt(std::string_view image, uint64_t offset) {
  if (offset > image.size() || image.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, image.data() + offset, sizeof(T));
  return value;
}

std::optional<std::string> ReadString(std::string_view image, uint64_t offset) {
  if (offset >= image.size()) return std::nullopt;
  const std::string_view rest = image.substr(offset);
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(rest.substr(0, end));
}

absl::StatusOr<Elf64_Ehdr> ReadHeader(std::string_view image) {
  const auto header = ReadAt<Elf64_Ehdr>(image, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return Damaged("no ELF header");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return Damaged("not 64-bit little-endian");
  }
  return *header;
}

absl::StatusOr<std::vector<Elf64_Phdr>> ReadProgramHeaders(std::string_view image) {
  KERNIX_ASSIGN_OR_RETURN(const Elf64_Ehdr header, ReadHeader(image));
  std::vector<Elf64_Phdr> segments;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = ReadAt<Elf64_Phdr>(image, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return Damaged("program headers past the end");
    segments.push_back(*segment);
  }
  return segments;
}

struct SectionTable {
  std::vector<Elf64_Shdr> sections;
  uint64_t names_offset = 0;
};

absl::StatusOr<SectionTable> ReadSectionTable(std::string_view image) {
  KERNIX_ASSIGN_OR_RETURN(const Elf64_Ehdr header, ReadHeader(image));
  SectionTable table;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = ReadAt<Elf64_Shdr>(image, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return Damaged("section headers past the end");
    table.sections.push_back(*section);
  }
  if (table.sections.empty()) return table;
  if (header.e_shstrndx >= table.sections.size()) return Damaged("no names of sections");
  table.names_offset = table.sections[header.e_shstrndx].sh_offset;
  return table;
}

std::optional<uint64_t> FileOffset(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

struct DynamicSection {
  uint64_t strings_address = 0;
  std::vector<uint64_t> needed;  // offsets into the strings
};

DynamicSection ReadDynamicSection(std::string_view image, const std::vector<Elf64_Phdr>& segments) {
  DynamicSection section;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = ReadAt<Elf64_Dyn>(image, segment.p_offset + at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_STRTAB) section.strings_address = entry->d_un.d_ptr;
      if (entry->d_tag == DT_NEEDED) section.needed.push_back(entry->d_un.d_val);
    }
  }
  return section;
}

// A file's content, mapped.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path) {
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info = {};
    if (file.get() < 0 || fstat(file.get(), &info) != 0) {
      return ErrnoStatus(errno, "open", path);
    }
    const auto size = static_cast<size_t>(info.st_size);
    if (size == 0) return Damaged(StrCat(path, " is empty"));
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data == MAP_FAILED) return absl::InternalError(StrCat("cannot map ", path, ": ", std::strerror(errno)));
    return MappedFile(data, size);
  }
  ~MappedFile() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  MappedFile& operator=(MappedFile&&) = delete;

  std::string_view content() const { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}

  void* data_;
  size_t size_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseNeededLibraries(std::string_view image) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Elf64_Phdr> segments, ReadProgramHeaders(image));
  const DynamicSection section = ReadDynamicSection(image, segments);
  std::vector<std::string> names;
  if (section.needed.empty()) return names;
  const std::optional<uint64_t> strings = FileOffset(segments, section.strings_address);
  if (!strings) return Damaged("no string table");
  for (const uint64_t offset : section.needed) {
    std::optional<std::string> name = ReadString(image, *strings + offset);
    if (!name) return Damaged("a library's name lies past the end");
    names.push_back(*std::move(name));
  }
  return names;
}

absl::StatusOr<std::vector<NamedSection>> ParseSections(std::string_view image, std::string_view prefix) {
  KERNIX_ASSIGN_OR_RETURN(const SectionTable table, ReadSectionTable(image));
  std::vector<NamedSection> found;
  for (const Elf64_Shdr& section : table.sections) {
    std::optional<std::string> name = ReadString(image, table.names_offset + section.sh_name);
    if (!name) return Damaged("a section's name lies past the end");
    if (section.sh_type == SHT_NOBITS || !name->starts_with(prefix)) continue;
    if (section.sh_offset > image.size() || image.size() - section.sh_offset < section.sh_size) {
      return Damaged("a section past the end");
    }
    found.push_back({*std::move(name), std::string(image.substr(section.sh_offset, section.sh_size))});
  }
  return found;
}

absl::StatusOr<std::vector<NamedSection>> SectionsOf(const std::string& path, std::string_view prefix) {
  KERNIX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ParseSections(file.content(), prefix);
}

absl::StatusOr<std::vector<std::string>> NeededLibraries(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ParseNeededLibraries(file.content());
}

}  // namespace kernix
