// SPDX-License-Identifier: Apache-2.0
#include "common/os/file_check.h"

#include <algorithm>
#include <utility>

namespace kernix {

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
