// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/step_store.h"

#include <algorithm>
#include <tuple>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "daemon/cache/rows.pb.h"

namespace kernix::cache {
namespace {

constexpr size_t kDigestBytes = 32;
constexpr int kMostShare = 8;  // of the limit that one result may take
constexpr char kTemporary[] = ".tmp";

std::string Encode(const StepResult& result) {
  internal::StepResult message;
  for (const auto& [path, content] : result.outputs) {
    internal::StepResult::Output& output = *message.add_output();
    output.set_path(path);
    output.set_content(content);
  }
  *message.mutable_header() = ToMessages(result.headers);
  std::string bytes = message.SerializeAsString();
  return DigestOf(bytes).Raw() + bytes;
}

std::optional<StepResult> Decode(std::string_view file) {
  if (file.size() < kDigestBytes) return std::nullopt;
  const std::string_view bytes = file.substr(kDigestBytes);
  internal::StepResult message;
  if (DigestOf(bytes).Raw() != file.substr(0, kDigestBytes) ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return std::nullopt;
  }
  StepResult result;
  for (internal::StepResult::Output& output : *message.mutable_output()) {
    result.outputs.emplace_back(std::move(*output.mutable_path()), std::move(*output.mutable_content()));
  }
  absl::StatusOr<std::vector<StatedHeader>> headers = FromMessages(std::move(*message.mutable_header()));
  if (!headers.ok()) return std::nullopt;
  result.headers = *std::move(headers);
  return result;
}

}  // namespace

StepStore::StepStore(Env& env, std::string folder, uint64_t limit_bytes)
    : env_(env), folder_(std::move(folder)), limit_bytes_(limit_bytes), kept_(limit_bytes) {
  std::vector<std::tuple<int64_t, Digest, uint64_t>> found;  // by time
  for (const std::string& name : env_.ListDirectory(folder_).value_or(std::vector<std::string>())) {
    const auto key = Digest::FromHex(name);
    const auto info = env_.Stat(JoinPath(folder_, name), /*follow=*/false);
    if (key.ok() && info.ok()) {
      found.emplace_back(info->mtime_ns, *key, info->size);
    } else {
      (void)env_.RemoveTree(JoinPath(folder_, name));  // a crash has left it; the next start tries again
    }
  }
  std::sort(found.begin(), found.end());
  const MutexLock lock(mutex_);
  for (const auto& [time, key, bytes] : found) Keep(key, bytes);
}

std::optional<StepResult> StepStore::Find(const Digest& key) {
  {
    const MutexLock lock(mutex_);
    if (kept_.Find(key) == nullptr) return std::nullopt;
  }
  const auto file = env_.ReadFile(PathOf(key));
  std::optional<StepResult> result = file.ok() ? Decode(*file) : std::nullopt;
  if (result) {
    // For the order after the next start. It does not matter if that fails.
    (void)env_.SetModificationTime(PathOf(key), env_.UnixMillis() * 1'000'000);
    return result;
  }
  Log(LogLevel::kWarning, "step_result_unusable", {{"path", PathOf(key)}});
  RemoveFile(key);
  const MutexLock lock(mutex_);
  kept_.Drop(key);
  return std::nullopt;
}

void StepStore::Put(const Digest& key, const StepResult& result) {
  const std::string file = Encode(result);
  if (file.size() > limit_bytes_ / kMostShare) return;
  const std::string path = PathOf(key);
  // Several loads may keep results under one key at the same time.
  const std::string temporary = StrCat(path, ".", writes_++, kTemporary);
  // The digest reveals files that a crash left half written.
  absl::Status status = env_.CreateDirectories(folder_, 0700);
  if (status.ok()) status = env_.WriteFile(temporary, file, 0600);
  if (status.ok()) status = env_.Rename(temporary, path);
  if (!status.ok()) {
    (void)env_.RemoveTree(temporary);
    return;
  }
  const MutexLock lock(mutex_);
  Keep(key, file.size());
}

void StepStore::RemoveAll() {
  std::vector<Digest> keys;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, file] : kept_) keys.push_back(key);
    kept_.Clear();
  }
  for (const Digest& key : keys) RemoveFile(key);
}

uint64_t StepStore::bytes() const {
  const MutexLock lock(mutex_);
  return kept_.used();
}

std::string StepStore::PathOf(const Digest& key) const { return JoinPath(folder_, key.Hex()); }

void StepStore::Keep(const Digest& key, uint64_t bytes) {
  for (const auto& [evicted, file] : kept_.Put(key, {}, bytes)) RemoveFile(evicted);
}

void StepStore::RemoveFile(const Digest& key) {
  (void)env_.RemoveTree(PathOf(key));
}  // the next start finds what stays

}  // namespace kernix::cache
