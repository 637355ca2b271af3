// SPDX-License-Identifier: Apache-2.0
#include "client/headers/header_files.h"

#include <utility>

#include "common/base/status_macros.h"

namespace kernix {
namespace {

// A file that changes twice within one tick of the file system's clock shows the same times both times: one that is as
// young as that when it is read is not remembered.
bool IsSettled(const FileInfo& info, int64_t read_at_ms) {
  constexpr int64_t kTickMs = 100;
  return info.ctime_ns / 1'000'000 + kTickMs < read_at_ms;
}

[[maybe_unused]] const HeaderFiles& kMadeAtLoad = HeaderFiles::OfProcess();

}  // namespace

HeaderFiles& HeaderFiles::OfProcess() {
  static auto* files = new HeaderFiles(Env::Posix());
  return *files;
}

HeaderFilePtr HeaderFiles::Find(const std::string& path, const FileInfo& info) {
  MutexLock lock(mutex_);
  const auto found = known_.find(path);
  return found != known_.end() && SameContent(found->second.info, info) ? found->second.file : nullptr;
}

void HeaderFiles::Remember(const std::string& path, const FileInfo& info, const HeaderFilePtr& file) {
  MutexLock lock(mutex_);
  known_.insert_or_assign(path, Known{info, file});
}

absl::StatusOr<HeaderFilePtr> HeaderFiles::Get(const std::string& path, HeaderTable& table) {
  const absl::StatusOr<FileInfo> info = env_.Stat(path);
  if (!info.ok() || info->type != FileType::kRegular) return nullptr;
  if (HeaderFilePtr known = Find(path, *info)) return known;
  if (HeaderFilePtr known = table.Find(path, *info)) {
    Remember(path, *info, known);
    return known;
  }
  const int64_t read_at_ms = env_.UnixMillis();
  KERNIX_ASSIGN_OR_RETURN(const std::string content, env_.ReadFile(path));
  auto file = std::make_shared<const HeaderFile>(HeaderFile{DigestOf(content), content.size(), ScanIncludes(content)});
  table.Note(path, *info, *file, read_at_ms);
  if (IsSettled(*info, read_at_ms)) Remember(path, *info, file);
  return file;
}

}  // namespace kernix
