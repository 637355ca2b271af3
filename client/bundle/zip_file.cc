// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/zip_file.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <type_traits>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_error.h"

namespace kernix {
namespace {

constexpr int kStored = 0;
constexpr zip_fileinfo kNoDate = {{0, 0, 0, 1, 0, 1980}, 0, 0, 0};  // the first day that a zip can say

struct CloseReader {
  void operator()(unzFile file) const { unzClose(file); }
};
using Reader = std::unique_ptr<std::remove_pointer_t<unzFile>, CloseReader>;

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(StrCat(path, " is no zip file, or damaged, or has folders"));
}

absl::Status CannotWrite(const std::string& path) { return ErrnoStatus(errno == 0 ? EIO : errno, "write", path); }

bool WriteEntry(zipFile file, const std::string& name, const std::string& content) {
  int result = zipOpenNewFileInZip64(file, name.c_str(), &kNoDate, nullptr, 0, nullptr, 0, nullptr, kStored, 0,
                                     content.size() >= UINT_MAX ? 1 : 0);
  if (result == ZIP_OK) result = zipWriteInFileInZip(file, content.data(), static_cast<unsigned>(content.size()));
  if (result == ZIP_OK) result = zipCloseFileInZip(file);
  return result == ZIP_OK;
}

// The entry at which `file` stands.
absl::Status ReadEntry(unzFile file, std::map<std::string, std::string>& contents) {
  unz_file_info64 info = {};
  std::array<char, 256> name = {};
  if (unzGetCurrentFileInfo64(file, &info, name.data(), name.size() - 1, nullptr, 0, nullptr, 0) != UNZ_OK ||
      info.uncompressed_size > INT_MAX || std::string_view(name.data()).find('/') != std::string_view::npos ||
      unzOpenCurrentFile(file) != UNZ_OK) {
    return absl::DataLossError("");
  }
  std::string& content = contents[name.data()];
  content.resize(info.uncompressed_size);
  const int read = unzReadCurrentFile(file, content.data(), static_cast<unsigned>(content.size()));
  const bool is_whole = unzCloseCurrentFile(file) == UNZ_OK && read == static_cast<int>(content.size());
  return is_whole ? absl::OkStatus() : absl::DataLossError("");
}

}  // namespace

absl::Status WriteZip(const std::string& path, const std::map<std::string, std::string>& contents) {
  errno = 0;
  zipFile file = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  if (file == nullptr) return CannotWrite(path);
  absl::Status status;
  for (const auto& [name, content] : contents) {
    if (status.ok() && !WriteEntry(file, name, content)) status = CannotWrite(path);
  }
  if (zipClose(file, nullptr) != ZIP_OK) status.Update(CannotWrite(path));
  return status;
}

absl::StatusOr<std::map<std::string, std::string>> ReadZip(const std::string& path) {
  const Reader file(unzOpen64(path.c_str()));
  std::map<std::string, std::string> contents;
  if (file == nullptr) return Damaged(path);
  int at = unzGoToFirstFile(file.get());
  for (; at == UNZ_OK; at = unzGoToNextFile(file.get())) {
    if (!ReadEntry(file.get(), contents).ok()) return Damaged(path);
  }
  if (at != UNZ_END_OF_LIST_OF_FILE) return Damaged(path);
  return contents;
}

}  // namespace kernix
