// SPDX-License-Identifier: Apache-2.0
//
// A shared object on disk.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/elf_image.h"

namespace kernix {

class ElfFile {
 public:
  // Maps `path`. Returns kNotFound if the file does not exist, and the errors of ElfImage::Parse().
  static absl::StatusOr<ElfFile> Open(const std::string& path);
  ~ElfFile();
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&&) = delete;

  // Valid as long as this object lives, also if the file is removed.
  std::string_view bytes() const { return mapped_; }
  const ElfImage& image() const { return image_; }

 private:
  explicit ElfFile(std::string_view mapped) : mapped_(mapped) {}

  std::string_view mapped_;
  ElfImage image_;
};

}  // namespace kernix
