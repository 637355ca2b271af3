// SPDX-License-Identifier: Apache-2.0
//
// The little that we read of ELF files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix {

// The shared libraries that `path` asks the loader for (its DT_NEEDED entries), in order. kNotFound when there is no
// such file, kInvalidArgument when it is no 64-bit little-endian ELF file or is damaged.
absl::StatusOr<std::vector<std::string>> NeededLibraries(const std::string& path);

// The same of a file's content. Any bytes are safe.
absl::StatusOr<std::vector<std::string>> ParseNeededLibraries(std::string_view image);

struct NamedSection {
  std::string name;
  std::string content;
};

// The sections of `path` whose names begin with `prefix`, in the order of the file. Errors as NeededLibraries().
absl::StatusOr<std::vector<NamedSection>> SectionsOf(const std::string& path, std::string_view prefix);

// The same of a file's content. Any bytes are safe.
absl::StatusOr<std::vector<NamedSection>> ParseSections(std::string_view image, std::string_view prefix);

}  // namespace kernix
