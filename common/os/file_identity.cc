// SPDX-License-Identifier: Apache-2.0
#include "common/os/file_identity.h"

#include <algorithm>
#include <string_view>

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

absl::StatusOr<Digest> DigestOfFile(ReadableFile& file) {
  constexpr size_t kPieceBytes = 256 << 10;
  Sha256 sha;
  std::string piece(kPieceBytes, '\0');
  for (uint64_t offset = 0;;) {
    KERNIX_ASSIGN_OR_RETURN(const size_t count, file.ReadAt(offset, piece));
    if (count == 0) return sha.Finish();
    sha.Update(std::string_view(piece).substr(0, count));
    offset += count;
  }
}

}  // namespace kernix
