// SPDX-License-Identifier: Apache-2.0
#include "common/os/file_identity.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/status_macros.h"

namespace kernix {
namespace {

constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

// File systems take their times from a clock that advances once per tick (10 ms at most, but later if a virtual machine
// waits for its processor).
constexpr int64_t kTickMs = 100;
// The tick of file systems that store no fractions of a second: FAT (two seconds), ext3 and old NFS servers (one
// second).
constexpr int64_t kCoarseTickMs = 2'000;

}  // namespace

// Uses the time of the last status change, because users can set the time of the last modification.
bool FileIdentity::SettledAt(int64_t unix_ms) const {
  const int64_t tick_ms = ctime_ns % kNanosecondsPerSecond == 0 ? kCoarseTickMs : kTickMs;
  return ctime_ns / kNanosecondsPerMillisecond + tick_ms < unix_ms;
}

absl::StatusOr<FileIdentity> IdentityOf(Env& env, const std::string& path, bool follow) {
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env.Stat(path, follow));
  return FileIdentity::Of(info);
}

bool IsSameFile(Env& env, const std::string& a, const std::string& b) {
  const absl::StatusOr<FileInfo> one = env.Stat(a);
  const absl::StatusOr<FileInfo> other = env.Stat(b);
  return one.ok() && other.ok() && FileId::Of(*one) == FileId::Of(*other);
}

WatchedFile StateOf(Env& env, const std::string& path, bool follow) {
  const absl::StatusOr<FileIdentity> identity = IdentityOf(env, path, follow);
  return {path, identity.ok() ? std::optional(*identity) : std::nullopt};
}

absl::Status Watch(Env& env, const std::string& path, std::vector<WatchedFile>& files, bool follow) {
  KERNIX_ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(env, path, follow));
  files.push_back({path, identity});
  return absl::OkStatus();
}

const WatchedFile* FirstChanged(Env& env, const std::vector<WatchedFile>& files, bool follow) {
  const auto changed = std::find_if(files.begin(), files.end(), [&](const WatchedFile& file) {
    const absl::StatusOr<FileIdentity> now = IdentityOf(env, file.path, follow);
    return now.ok() ? file.identity != *now : file.identity.has_value();
  });
  return changed == files.end() ? nullptr : &*changed;
}

bool Unchanged(Env& env, const std::vector<WatchedFile>& files, bool follow) {
  return FirstChanged(env, files, follow) == nullptr;
}

absl::StatusOr<Digest> DigestOfFile(ReadableFile& file, uint64_t most) {
  constexpr size_t kPieceBytes = 256 << 10;
  Sha256 sha;
  std::string piece(kPieceBytes, '\0');
  size_t count = 0;
  for (uint64_t offset = 0; offset < most; offset += count) {
    const size_t wanted = std::min<uint64_t>(most - offset, piece.size());
    KERNIX_ASSIGN_OR_RETURN(count, file.ReadAt(offset, std::span(piece).first(wanted)));
    if (count == 0) break;
    sha.Update(std::string_view(piece).substr(0, count));
  }
  return sha.Finish();
}

bool FileCheck::Unchanged(const Files& files) {
  const auto [list, is_new] = lists_.try_emplace(files, false);
  if (is_new) list->second = FindOut(files);
  return list->second;
}

bool FileCheck::FindOut(const Files& files) {
  if (known_ != nullptr) {
    if (const std::vector<const WatchedFile*>* const left = known_->Find(files); left != nullptr) {
      spared_ += files->size() - left->size();
      return std::all_of(left->begin(), left->end(), [&](const WatchedFile* file) { return IsAsRecorded(*file); });
    }
  }
  return std::all_of(files->begin(), files->end(), [&](const WatchedFile& file) { return IsAsRecorded(file); });
}

bool FileCheck::IsAsRecorded(const WatchedFile& file) {
  const auto [found, is_new] = found_.try_emplace(file.path);
  if (is_new) found->second = StateOf(env_, file.path).identity;
  return found->second == file.identity;
}

FileCheck FileChecker::Begin() {
  if (watch_ != nullptr && watch_->Changed()) known_.Clear();
  return FileCheck(env_, &known_);
}

void FileChecker::Watch(const FileCheck& check) {
  if (watch_ == nullptr) return;
  for (const auto& [files, unchanged] : check.lists_) {
    if (unchanged && !known_.Contains(files)) Watch(files);
  }
}

void FileChecker::Watch(const FileCheck::Files& files) {
  std::vector<const WatchedFile*> left;
  for (const WatchedFile& file : *files) {
    if (!file.identity || !watch_->Add(file.path)) left.push_back(&file);
  }
  // A change between the first check and the watch had no event.
  if (FileCheck(env_).Unchanged(files)) known_.Put(files, std::move(left));
}

void OwnFiles::Add(const std::string& path) {
  const absl::StatusOr<FileInfo> info = env_.Stat(path);
  if (info.ok()) Add(path, FileId::Of(*info));
}

// A file that cannot be looked at just now may still be in place.
std::string OwnFiles::FirstLost() const {
  for (const auto& [path, id] : files_) {
    const absl::StatusOr<FileInfo> info = env_.Stat(path);
    if (absl::IsNotFound(info.status()) || (info.ok() && FileId::Of(*info) != id)) return path;
  }
  return "";
}

std::vector<std::string> OwnFiles::Names() const {
  std::vector<std::string> names;
  for (const auto& [path, id] : files_) names.push_back(path);
  return names;
}

bool SeenFiles::Changed(const std::vector<std::string>& paths) {
  before_ = StatesOf(paths);
  begun_unix_ms_ = env_.UnixMillis();
  return seen_ != before_;
}

// A file that the load has found only now, and that is too young to tell, is left out: Changed() will find that new.
void SeenFiles::NoteLoad(const std::vector<std::string>& paths) {
  States seen;
  for (const auto& [path, identity] : StatesOf(paths)) {
    const auto known = before_.find(path);
    if (known != before_.end()) {
      seen.insert(*known);
    } else if (!identity || identity->SettledAt(begun_unix_ms_)) {
      seen.emplace(path, identity);
    }
  }
  seen_ = std::move(seen);
}

SeenFiles::States SeenFiles::StatesOf(const std::vector<std::string>& paths) const {
  States states;
  for (const std::string& path : paths) states.emplace(path, StateOf(env_, path).identity);
  return states;
}

}  // namespace kernix
