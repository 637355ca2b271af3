// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/file_digests.h"

#include "daemon/base/status_macros.h"

namespace kernix::toolchain {

bool SameContent(const FileInfo& a, const FileInfo& b) {
  return a.size == b.size && a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns && a.inode == b.inode &&
         a.device == b.device;
}

absl::StatusOr<Digest> FileDigests::Get(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const FileInfo before, env_.Stat(path));
  {
    MutexLock lock(mutex_);
    const auto known = known_.find(path);
    if (known != known_.end() && SameContent(known->second.info, before)) return known->second.digest;
  }
  KERNIX_ASSIGN_OR_RETURN(const std::string content, env_.ReadFile(path));
  const Digest digest = DigestOf(content);
  const absl::StatusOr<FileInfo> after = env_.Stat(path);
  if (after.ok() && SameContent(before, *after)) {  // else it changed under our hands: read it again next time
    MutexLock lock(mutex_);
    known_[path] = {before, digest};
  }
  return digest;
}

}  // namespace kernix::toolchain
