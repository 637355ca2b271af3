// SPDX-License-Identifier: Apache-2.0
//
// Cache::Verify(): a check of the whole store, piece by piece: the content of each artifact, and the index against the
// files.
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/cache/cache.h"
#include "daemon/cache/index.h"
#include "daemon/cache/index_schema.h"
#include "daemon/cache/store_folder.h"

namespace kernix::cache {
namespace {

// A piece ends after this much.
constexpr uint64_t kMostBytes = 16 << 20;
constexpr size_t kMostArtifacts = 1000;

using Problem = v1::VerifyCacheResponse::Problem;

Problem& AddProblem(Problem::Kind kind, const std::string& path, v1::VerifyCacheResponse& response) {
  Problem& problem = *response.add_problem();
  problem.set_kind(kind);
  problem.set_path(path);
  Log(LogLevel::kWarning, "cache_problem", {{"kind", Problem::Kind_Name(kind)}, {"path", path}});
  return problem;
}

}  // namespace

absl::StatusOr<v1::VerifyCacheResponse> Cache::Verify(const v1::VerifyCacheRequest& request) {
  if (const std::string lost = FirstLost(); !lost.empty()) {
    return absl::UnavailableError(StrCat(lost, " is gone, and this kernixd ends: verify the store of the next one"));
  }
  v1::VerifyCacheResponse response;
  Digest after;
  if (request.after().empty()) {
    KERNIX_RETURN_IF_ERROR(Wrap(CheckIndexFile(StorePaths(options_.directory).index)));
    KERNIX_RETURN_IF_ERROR(Wrap(VerifyFiles(request.repair(), response)));
  } else {
    KERNIX_ASSIGN_OR_RETURN(after, Digest::FromRaw(request.after()));
  }
  response.set_total_bytes(index_->holdings().artifact_bytes);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<SizedArtifact> artifacts,
                          Wrap(index_->ArtifactsAfter(after, kMostArtifacts)));
  for (const SizedArtifact& artifact : artifacts) {
    KERNIX_RETURN_IF_ERROR(VerifyArtifact(artifact, request.repair(), response));
    response.set_next(artifact.digest.Raw());
    if (response.bytes() >= kMostBytes) return response;
  }
  if (artifacts.size() < kMostArtifacts) response.clear_next();
  return response;
}

absl::Status Cache::VerifyArtifact(const SizedArtifact& artifact, bool repair, v1::VerifyCacheResponse& response) {
  response.set_artifacts(response.artifacts() + 1);
  response.set_bytes(response.bytes() + artifact.size);
  blobs_->Forget(artifact.digest);
  const std::string path = BlobPath(artifact.digest);
  const bool is_there = env_.Stat(path, /*follow=*/false).ok();
  const absl::StatusOr<bool> sound = IsSound(artifact.digest, artifact.size);
  if (sound.ok() && *sound) return absl::OkStatus();
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> keys, Wrap(index_->KeysOf(artifact.digest)));
  if (keys.empty()) return absl::OkStatus();  // it was removed meanwhile
  if (!sound.ok()) {
    AddProblem(Problem::UNREADABLE, path, response).set_error(std::string(ToStd(sound.status().message())));
    return absl::OkStatus();
  }
  Problem& problem = AddProblem(is_there ? Problem::DAMAGED : Problem::MISSING, path, response);
  for (const Digest& key : keys) problem.add_key(key.Raw());
  if (repair) KERNIX_RETURN_IF_ERROR(DropEntriesOf(artifact.digest));
  problem.set_repaired(repair);
  return absl::OkStatus();
}

// Without an entry, a file is useless: nothing finds it.
absl::Status Cache::VerifyFiles(bool repair, v1::VerifyCacheResponse& response) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, blobs_->Names());
  for (const std::string& name : names) {
    const MutexLock lock(blobs_mutex_);
    KERNIX_ASSIGN_OR_RETURN(const bool unnamed, IsUnnamed(name));
    if (!unnamed) continue;
    const std::string path = JoinPath(StorePaths(options_.directory).blobs, name);
    Problem& problem = AddProblem(Problem::UNNAMED, path, response);
    if (!repair || !FirstLost().empty()) continue;
    KERNIX_RETURN_IF_ERROR(env_.RemoveTree(path));
    problem.set_repaired(true);
  }
  return absl::OkStatus();
}

// A blob that is being written, or was given out just now, is none of these.
absl::StatusOr<bool> Cache::IsUnnamed(const std::string& name) {
  const absl::StatusOr<Digest> digest = Digest::FromHex(name.substr(0, name.find('.')));
  if (!digest.ok()) return true;
  if (guards_.contains(*digest) || loans_.contains(*digest)) return false;
  if (name != Basename(blobs_->PathOf(*digest))) return true;
  KERNIX_ASSIGN_OR_RETURN(const bool named, index_->IsNamed(*digest));
  return !named;
}

}  // namespace kernix::cache
