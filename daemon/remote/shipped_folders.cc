// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/shipped_folders.h"

#include <algorithm>
#include <utility>

#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "daemon/exec/action_digest.h"

namespace kernix::remote {
namespace {

// Reads one folder with all that is in it.
class Walk {
 public:
  Walk(Env& env, std::string root) : env_(env), root_(std::move(root)) {}

  absl::StatusOr<ShippedFolder> Run() {
    KERNIX_RETURN_IF_ERROR(AddFolder(""));
    folder_.digest = tree_.Write(folder_.messages);
    return std::move(folder_);
  }

 private:
  std::string FullPath(const std::string& path) const { return path.empty() ? root_ : JoinPath(root_, path); }

  absl::Status AddFolder(const std::string& path) {
    KERNIX_RETURN_IF_ERROR(Watch(env_, FullPath(path), folder_.seen));
    KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, env_.ListDirectory(FullPath(path)));
    for (const std::string& name : names) {
      KERNIX_RETURN_IF_ERROR(AddEntry(path.empty() ? name : JoinPath(path, name)));
    }
    return absl::OkStatus();
  }

  absl::Status AddEntry(const std::string& path) {
    KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env_.Stat(FullPath(path), /*follow=*/false));
    switch (info.type) {
      case FileType::kDirectory:
        return AddFolder(path);
      case FileType::kRegular:
        return AddFile(path, info.mode);
      case FileType::kSymlink:
        return AddLink(path);
      case FileType::kOther:
        break;
    }
    return absl::FailedPreconditionError(StrCat(FullPath(path), " is neither a file nor a folder"));
  }

  absl::Status AddFile(const std::string& path, mode_t mode) {
    KERNIX_RETURN_IF_ERROR(Watch(env_, FullPath(path), folder_.seen));
    KERNIX_ASSIGN_OR_RETURN(const exec::BlobDigest digest, DigestOf(FullPath(path)));
    folder_.files.emplace(digest, FullPath(path));
    tree_.AddFile(path, digest, (mode & 0111) != 0);
    return absl::OkStatus();
  }

  absl::StatusOr<exec::BlobDigest> DigestOf(const std::string& path) const {
    KERNIX_ASSIGN_OR_RETURN(const std::string real, env_.RealPath(path));
    KERNIX_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, env_.OpenFile(real));
    KERNIX_ASSIGN_OR_RETURN(const FileInfo info, file->Stat());
    KERNIX_ASSIGN_OR_RETURN(const Digest hash, DigestOfFile(*file));
    return exec::BlobDigest{hash, info.size};
  }

  absl::Status AddLink(const std::string& path) {
    KERNIX_ASSIGN_OR_RETURN(std::string target, env_.ReadLink(FullPath(path)));
    const std::string leads_to = NormalizePath(JoinPath(Dirname(FullPath(path)), target));
    if (target.front() != '/' && IsBelow(leads_to, root_)) {
      folder_.seen.push_back(StateOf(env_, FullPath(path)));
      tree_.AddLink(path, std::move(target));
      return absl::OkStatus();
    }
    KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env_.Stat(FullPath(path)));
    if (info.type == FileType::kRegular) return AddFile(path, info.mode);
    return absl::FailedPreconditionError(StrCat(FullPath(path), " leads out of the folder, to ", leads_to));
  }

  Env& env_;
  const std::string root_;
  ShippedFolder folder_;
  exec::MerkleTree tree_;
};

}  // namespace

bool ShippedFolders::Ships(const std::string& path) const {
  return std::any_of(folders_.begin(), folders_.end(),
                     [&](const std::string& folder) { return path == folder || IsBelow(path, folder); });
}

absl::StatusOr<std::shared_ptr<const ShippedFolder>> ShippedFolders::Get(const std::string& path) {
  // While one thread reads a folder, others that need it wait.
  const MutexLock lock(mutex_);
  std::shared_ptr<const ShippedFolder>& known = known_[path];
  if (known != nullptr && Unchanged(env_, known->seen)) return known;
  KERNIX_ASSIGN_OR_RETURN(ShippedFolder folder, Walk(env_, path).Run());
  known = std::make_shared<const ShippedFolder>(std::move(folder));
  return known;
}

}  // namespace kernix::remote
