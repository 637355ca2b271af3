// SPDX-License-Identifier: Apache-2.0
#include "common/os/elf_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"

namespace kernix {

absl::StatusOr<ElfFile> ElfFile::Open(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "open", path);
  if (info.st_size == 0) return absl::InvalidArgumentError(StrCat(path, " is empty"));
  const auto size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, "map", path);
  ElfFile mapped(std::string_view(static_cast<const char*>(data), size));
  KERNIX_ASSIGN_OR_RETURN(mapped.image_, ElfImage::Parse(mapped.mapped_));
  return mapped;
}

ElfFile::~ElfFile() {
  if (!mapped_.empty()) munmap(const_cast<char*>(mapped_.data()), mapped_.size());
}

ElfFile::ElfFile(ElfFile&& other) noexcept
    : mapped_(std::exchange(other.mapped_, {})), image_(std::move(other.image_)) {}

}  // namespace kernix
