// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/file_digests.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::toolchain {
namespace {

// Compilers have up to 80 MB, which need not be in memory at once.
constexpr uint64_t kLargeBytes = 4 << 20;

absl::StatusOr<Digest> DigestInPieces(Env& env, const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const std::string real, env.RealPath(path));
  KERNIX_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, env.OpenFile(real));
  return DigestOfFile(*file);
}

}  // namespace

absl::StatusOr<Digest> FileDigests::Get(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const Content content, GetContent(path));
  return content.digest;
}

absl::StatusOr<FileDigests::Content> FileDigests::GetContent(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const FileIdentity before, IdentityOf(env_, path));
  return KnownOrRead(path, before);
}

absl::StatusOr<Digest> FileDigests::Get(const std::string& path, std::vector<WatchedFile>& watched) {
  KERNIX_RETURN_IF_ERROR(Watch(env_, path, watched));
  KERNIX_ASSIGN_OR_RETURN(const Content content, KnownOrRead(path, *watched.back().identity));
  return content.digest;
}

absl::StatusOr<FileDigests::Content> FileDigests::KnownOrRead(const std::string& path, const FileIdentity& before) {
  {
    const MutexLock lock(mutex_);
    const auto known = known_.find(path);
    if (known != known_.end() && known->second.identity == before) return known->second;
  }
  return Read(path, before);
}

absl::StatusOr<Digest> FileDigests::DigestOfContent(const std::string& path, uint64_t size) {
  if (size >= kLargeBytes) {
    const absl::StatusOr<Digest> digest = DigestInPieces(env_, path);
    if (digest.ok()) return digest;  // else: whatever is wrong, the other way says so, too
  }
  KERNIX_ASSIGN_OR_RETURN(const std::string text, env_.ReadFile(path));
  return DigestOf(text);
}

absl::StatusOr<FileDigests::Content> FileDigests::Read(const std::string& path, const FileIdentity& before) {
  const int64_t read_unix_ms = env_.UnixMillis();
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, DigestOfContent(path, before.size));
  const Content content{digest, before, env_.Now()};
  const absl::StatusOr<FileIdentity> after = IdentityOf(env_, path);
  // Otherwise the file changed while it was read, and the next call reads it again.
  if (!after.ok() || *after != before) return content;
  const MutexLock lock(mutex_);
  // Another thread may have read the file in this state earlier; its time counts.
  const auto known = known_.find(path);
  if (known != known_.end() && known->second.identity == before) return known->second;
  known_.insert_or_assign(path, content);
  if (before.SettledAt(read_unix_ms)) news_.push_back({path, before, content.digest});
  return content;
}

void FileDigests::Remember(const std::vector<KnownFile>& files) {
  const MutexLock lock(mutex_);
  for (const KnownFile& file : files) {
    known_.try_emplace(file.path, Content{file.digest, file.identity, MonotonicTime::min()});
  }
}

std::vector<KnownFile> FileDigests::TakeNews() {
  const MutexLock lock(mutex_);
  return std::exchange(news_, {});
}

void FileDigests::PutBackNews(const std::vector<KnownFile>& files) {
  const MutexLock lock(mutex_);
  // One for each path, because files may be put back repeatedly while the disk is full.
  absl::flat_hash_map<std::string, KnownFile> latest;
  for (const KnownFile& file : files) latest.insert_or_assign(file.path, file);
  for (const KnownFile& file : news_) latest.insert_or_assign(file.path, file);
  news_.clear();
  for (auto& [path, file] : latest) news_.push_back(std::move(file));
}

std::vector<WatchedFile> Parts::States(Env& env) const {
  std::vector<WatchedFile> states;
  for (const Part& part : parts_) states.push_back(StateOf(env, part.path));
  return states;
}

absl::StatusOr<Digest> Parts::Identity(FileDigests& digests, std::string_view domain,
                                       std::vector<WatchedFile>& watched) const {
  struct Found {
    absl::StatusOr<Digest> digest;
    std::vector<WatchedFile> watched;
  };
  std::vector<Found> found(parts_.size());
  std::vector<std::function<void()>> tasks;  // some parts have 80 MB
  for (size_t i = 0; i < parts_.size(); ++i) {
    tasks.emplace_back([&, i] { found[i].digest = digests.Get(parts_[i].path, found[i].watched); });
  }
  RunSideBySide(tasks);
  CanonicalHasher hasher(domain);
  hasher.List("parts", parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    const absl::StatusOr<Digest>& digest = found[i].digest;
    if (!digest.ok()) {
      return MakeError(v1::ErrorDetail::TOOLCHAIN,
                       StrCat("cannot read a part of the toolchain: ", digest.status().message()));
    }
    watched.insert(watched.end(), found[i].watched.begin(), found[i].watched.end());
    hasher.Field("role", parts_[i].role).Field("content", *digest);
  }
  return hasher.Finish();
}

}  // namespace kernix::toolchain
