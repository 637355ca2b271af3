// SPDX-License-Identifier: Apache-2.0
#include "client/headers/header_table.h"

#include <utility>

#include "client/headers/header_table.pb.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"

namespace kernix {
namespace {

constexpr size_t kDigestBytes = 32;

void SetName(const IncludeName& from, internal::KnownHeader::Name& to) {
  to.set_form(static_cast<int>(from.form));
  to.set_name(from.name);
}

IncludeName NameFrom(const internal::KnownHeader::Name& name) {
  return {static_cast<IncludeForm>(name.form()), name.name()};
}

std::string Pack(const FileIdentity& identity, const HeaderFile& file) {
  internal::KnownHeader known;
  known.set_size(identity.size);
  known.set_mtime_ns(identity.mtime_ns);
  known.set_ctime_ns(identity.ctime_ns);
  known.set_inode(identity.inode);
  known.set_device(identity.device);
  known.set_digest(file.digest.Raw());
  for (const ScannedInclude& include : file.text.includes) {
    internal::KnownHeader::Include& entry = *known.add_include();
    SetName(include.target, *entry.mutable_target());
    entry.set_next(include.next);
    entry.set_question(include.question);
    entry.set_line(include.line);
  }
  for (const auto& [macro, values] : file.text.definitions) {
    internal::KnownHeader::Definition& entry = *known.add_definition();
    entry.set_macro(macro);
    for (const IncludeName& value : values) SetName(value, *entry.add_value());
  }
  return known.SerializeAsString();
}

ScannedText TextFrom(const internal::KnownHeader& known) {
  ScannedText text;
  text.includes.reserve(known.include_size());
  for (const internal::KnownHeader::Include& include : known.include()) {
    text.includes.push_back({NameFrom(include.target()), include.next(), include.question(), include.line()});
  }
  for (const internal::KnownHeader::Definition& definition : known.definition()) {
    std::vector<IncludeName>& values = text.definitions[definition.macro()];
    for (const internal::KnownHeader::Name& value : definition.value()) values.push_back(NameFrom(value));
  }
  return text;
}

// Returns null if the entry describes the file in another state.
HeaderFilePtr Unpack(const std::string& packed, const FileIdentity& identity) {
  internal::KnownHeader known;
  if (!known.ParseFromString(packed)) return nullptr;
  const FileIdentity then{.device = known.device(),
                          .inode = known.inode(),
                          .size = known.size(),
                          .mtime_ns = known.mtime_ns(),
                          .ctime_ns = known.ctime_ns()};
  const absl::StatusOr<Digest> digest = Digest::FromRaw(known.digest());
  if (then != identity || !digest.ok()) return nullptr;
  return std::make_shared<const HeaderFile>(HeaderFile{*digest, known.size(), TextFrom(known)});
}

}  // namespace

void HeaderTable::Open() {
  opened_ = true;
  const absl::StatusOr<std::string> folder = folder_();
  if (!folder.ok()) return;
  path_ = JoinPath(*folder, "table");
  const absl::StatusOr<FileInfo> info = env_.Stat(path_);
  if (!info.ok() || info->size > max_bytes_) return;
  const absl::StatusOr<std::string> text = env_.ReadFile(path_);
  if (text.ok()) Parse(*text);
}

void HeaderTable::Parse(const std::string& text) {
  if (text.size() < kDigestBytes) return;
  const std::string_view body = std::string_view(text).substr(kDigestBytes);
  internal::HeaderTableFile file;
  if (DigestOf(body).Raw() != text.substr(0, kDigestBytes)) return;
  if (!file.ParseFromArray(body.data(), static_cast<int>(body.size())) || file.build_id() != BuildId()) return;
  entries_.reserve(file.entry_size());
  for (internal::HeaderTableFile::Entry& entry : *file.mutable_entry()) {
    const auto [noted, is_new] = entries_.try_emplace(*entry.mutable_path(), Entry{std::move(*entry.mutable_known())});
    if (!is_new && noted->second.known == entry.known()) --noted_;  // this process had read that row: not new
  }
}

HeaderFilePtr HeaderTable::Find(const std::string& path, const FileIdentity& identity) {
  if (++looked_for_ < kWorthwhile) return nullptr;
  if (!opened_) Open();
  const auto found = entries_.find(path);
  if (found == entries_.end()) return nullptr;
  HeaderFilePtr file = Unpack(found->second.known, identity);
  if (file != nullptr) found->second.used = true;
  return file;
}

// On a network file system, a change by another machine may show in a file's times later than in its content.
bool HeaderTable::TellsOfChanges(const std::string& path, uint64_t device) {
  const auto [known, is_new] = local_devices_.try_emplace(device, false);
  if (is_new) known->second = !env_.OnNetworkFileSystem(path).value_or(true);
  return known->second;
}

void HeaderTable::Note(const std::string& path, const FileIdentity& identity, const HeaderFile& file) {
  // A row whose file changed while it was read is never found, because no later state has its identity.
  if (!TellsOfChanges(path, identity.device)) return;
  entries_.insert_or_assign(path, Entry{Pack(identity, file), /*used=*/true});
  ++noted_;
}

std::string HeaderTable::Serialize(bool only_used) const {
  internal::HeaderTableFile file;
  file.set_build_id(BuildId());
  for (const auto& [path, entry] : entries_) {
    if (only_used && !entry.used) continue;
    internal::HeaderTableFile::Entry& kept = *file.add_entry();
    kept.set_path(path);
    kept.set_known(entry.known);
  }
  const std::string body = file.SerializeAsString();
  return DigestOf(body).Raw() + body;
}

void HeaderTable::Save() {
  if (noted_ < kWorthwhile || path_.empty()) return;
  noted_ = 0;
  std::string text = Serialize(/*only_used=*/false);
  if (text.size() > max_bytes_) text = Serialize(/*only_used=*/true);
  if (text.size() <= max_bytes_) env_.WriteFileDurably(path_, text, 0600).IgnoreError();
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
