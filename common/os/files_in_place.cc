// SPDX-License-Identifier: Apache-2.0
#include "common/os/files_in_place.h"

namespace kernix {

void FilesInPlace::Add(const std::string& path) {
  const absl::StatusOr<FileInfo> info = env_.Stat(path);
  if (info.ok()) Add(path, FileId::Of(*info));
}

// A file that cannot be looked at just now may still be in place.
std::string FilesInPlace::FirstLost() const {
  for (const auto& [path, id] : files_) {
    const absl::StatusOr<FileInfo> info = env_.Stat(path);
    if (absl::IsNotFound(info.status()) || (info.ok() && FileId::Of(*info) != id)) return path;
  }
  return "";
}

std::vector<std::string> FilesInPlace::Names() const {
  std::vector<std::string> names;
  for (const auto& [path, id] : files_) names.push_back(path);
  return names;
}

}  // namespace kernix
