// SPDX-License-Identifier: Apache-2.0
#include "client/headers/header_files.h"

#include <utility>

#include "common/base/status_macros.h"

namespace kernix {
namespace {

[[maybe_unused]] const HeaderFiles& kMadeAtLoad = HeaderFiles::OfProcess();

}  // namespace

HeaderFiles& HeaderFiles::OfProcess() {
  static auto* files = new HeaderFiles(Env::Posix());
  return *files;
}

HeaderFilePtr HeaderFiles::Find(const std::string& path, const FileIdentity& identity) {
  MutexLock lock(mutex_);
  const auto found = known_.find(path);
  return found != known_.end() && found->second.identity == identity ? found->second.file : nullptr;
}

void HeaderFiles::Remember(const std::string& path, const FileIdentity& identity, const HeaderFilePtr& file) {
  MutexLock lock(mutex_);
  known_.insert_or_assign(path, Known{identity, file});
}

absl::StatusOr<HeaderFilePtr> HeaderFiles::Get(const std::string& path, HeaderTable& table) {
  const absl::StatusOr<FileInfo> info = env_.Stat(path);
  if (!info.ok() || info->type != FileType::kRegular) return nullptr;
  const FileIdentity identity = FileIdentity::Of(*info);
  if (HeaderFilePtr known = Find(path, identity)) return known;
  if (HeaderFilePtr known = table.Find(path, identity)) {
    Remember(path, identity, known);
    return known;
  }
  const int64_t read_at_ms = env_.UnixMillis();
  KERNIX_ASSIGN_OR_RETURN(const std::string content, env_.ReadFile(path));
  auto file = std::make_shared<const HeaderFile>(HeaderFile{DigestOf(content), content.size(), ScanIncludes(content)});
  if (!identity.SettledAt(read_at_ms)) return file;
  table.Note(path, identity, *file);
  Remember(path, identity, file);
  return file;
}

}  // namespace kernix
