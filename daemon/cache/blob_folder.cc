// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/blob_folder.h"

#include <optional>
#include <utility>

#include "absl/strings/strip.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_digest.h"
#include "daemon/cache/store_folder.h"

namespace kernix::cache {
namespace {

constexpr mode_t kBlobMode = 0444;

}  // namespace

std::string BlobFolder::PathOf(const Digest& digest) const {
  return JoinPath(directory_, StrCat(digest.Hex(), kBlobSuffix));
}

absl::Status BlobFolder::Put(const Digest& digest, std::string_view content, Durability durability) {
  const bool is_enough = durability == Durability::kMayBeLost || !MayBeLost(digest);
  if (is_enough && IsSound(digest, content.size()).value_or(false)) return absl::OkStatus();
  const std::string path = PathOf(digest);
  KERNIX_RETURN_IF_ERROR(Write(path, content, durability));
  KERNIX_ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(env_, path, /*follow=*/false));
  Remember(digest, identity, durability);
  return absl::OkStatus();
}

// Under its name, a file is always complete. What is left of others goes with the next start.
absl::Status BlobFolder::Write(const std::string& path, std::string_view content, Durability durability) {
  if (durability == Durability::kSurvives) return env_.WriteFileDurably(path, content, kBlobMode);
  const std::string temporary = StrCat(path, ".", ++written_, ".tmp");
  absl::Status status = env_.WriteFile(temporary, content, kBlobMode);
  if (status.ok()) status = env_.Rename(temporary, path);
  if (!status.ok()) env_.RemoveFile(temporary).IgnoreError();
  return status;
}

absl::StatusOr<bool> BlobFolder::IsSound(const Digest& digest, uint64_t size) {
  const std::string path = PathOf(digest);
  const absl::StatusOr<FileInfo> info = env_.Stat(path, /*follow=*/false);
  if (absl::IsNotFound(info.status())) return false;
  KERNIX_RETURN_IF_ERROR(info.status());
  if (info->type != FileType::kRegular || info->size != size) return false;
  if (Remembers(digest, FileIdentity::Of(*info))) return true;
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = env_.OpenFile(path);
  if (absl::IsNotFound(file.status())) return false;
  KERNIX_RETURN_IF_ERROR(file.status());
  return Verify(digest, **file);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> BlobFolder::Open(const Digest& digest) {
  const std::string path = PathOf(digest);
  KERNIX_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, env_.OpenFile(path));
  KERNIX_ASSIGN_OR_RETURN(const bool sound, Verify(digest, *file));
  if (!sound) return absl::DataLossError(StrCat(path, ": the content does not match the name"));
  return file;
}

absl::StatusOr<bool> BlobFolder::Verify(const Digest& digest, ReadableFile& file) {
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, file.Stat());
  const FileIdentity identity = FileIdentity::Of(info);
  if (Remembers(digest, identity)) return true;
  KERNIX_ASSIGN_OR_RETURN(const Digest content, DigestOfFile(file));
  if (content != digest) return false;
  Remember(digest, identity);
  return true;
}

absl::Status BlobFolder::Remove(const Digest& digest) {
  {
    const MutexLock lock(mutex_);
    verified_.erase(digest);
    not_awaited_.erase(digest);
  }
  const absl::Status status = env_.RemoveFile(PathOf(digest));
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status BlobFolder::RemoveAllBut(const absl::flat_hash_set<Digest>& keep) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, env_.ListDirectory(directory_));
  for (const std::string& name : names) {
    const absl::StatusOr<Digest> digest = Digest::FromHex(ToStd(absl::StripSuffix(name, kBlobSuffix)));
    if (digest.ok() && JoinPath(directory_, name) == PathOf(*digest) && keep.contains(*digest)) continue;
    KERNIX_RETURN_IF_ERROR(env_.RemoveTree(JoinPath(directory_, name)));
  }
  return absl::OkStatus();
}

void BlobFolder::Remember(const Digest& digest, const FileIdentity& identity, Durability durability) {
  const MutexLock lock(mutex_);
  verified_[digest] = identity;
  durability == Durability::kMayBeLost ? (void)not_awaited_.insert(digest) : (void)not_awaited_.erase(digest);
}

bool BlobFolder::MayBeLost(const Digest& digest) {
  const MutexLock lock(mutex_);
  return not_awaited_.contains(digest);
}

bool BlobFolder::Remembers(const Digest& digest, const FileIdentity& identity) {
  const MutexLock lock(mutex_);
  const auto found = verified_.find(digest);
  return found != verified_.end() && found->second == identity;
}

}  // namespace kernix::cache
