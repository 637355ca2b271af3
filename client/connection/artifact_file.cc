// SPDX-License-Identifier: Apache-2.0
#include "client/connection/artifact_file.h"

#include <memory>
#include <optional>

#include "client/connection/endpoint.h"
#include "client/connection/grpc_call.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/folders.h"
#include "common/os/private_directory.h"
#include "common/wire/call_status.h"

namespace kernix {
namespace {

constexpr mode_t kWritableByOthers = 0022;

absl::StatusOr<std::string> GuardedFolder(const ClientEnvironment& environment, const std::string& folder,
                                          uid_t owner) {
  if (!IsTrustedUser(owner, environment.uid)) {
    return absl::PermissionDeniedError(StrCat("will not run files in ", folder, ": it belongs to ", DescribeUser(owner),
                                              ", and would run as ", DescribeUser(environment.uid)));
  }
  return GuardedRealPath(*environment.env, folder, {owner, environment.uid});
}

absl::StatusOr<std::string> ReadStream(GrpcCall& call, uint64_t size) {
  std::string content;
  v1::ArtifactChunk chunk;
  while (call.Read(chunk)) {
    if (content.size() + chunk.data().size() > size)
      return absl::OutOfRangeError("the daemon sent more bytes than it announced");
    content += chunk.data();
  }
  return content;
}

}  // namespace

absl::StatusOr<std::string> CheckArtifact(const ClientEnvironment& environment, const std::string& path,
                                          uint64_t size) {
  if (!path.starts_with('/')) return absl::NotFoundError(StrCat("\"", path, "\" is not a path on this machine"));
  KERNIX_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, environment.env->OpenFile(path));
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, file->Stat());
  if (info.size != size) return absl::NotFoundError(StrCat(path, " is not the artifact: it has another size"));
  if ((info.mode & kWritableByOthers) != 0) {
    return absl::PermissionDeniedError(StrCat("will not run ", path, ": users other than its owner may write to it"));
  }
  KERNIX_ASSIGN_OR_RETURN(const std::string folder, GuardedFolder(environment, Dirname(path), info.uid));
  return JoinPath(folder, Basename(path));
}

absl::StatusOr<std::string> FetchedArtifactPath(const ClientEnvironment& environment, const Digest& digest) {
  KERNIX_ASSIGN_OR_RETURN(const std::string store,
                          DefaultStoreDirectory(*environment.env, environment.get_env, environment.uid));
  return JoinPath(JoinPath(store, "fetched"), digest.Hex() + ".so");
}

absl::Status EnsureFetchedFolder(const ClientEnvironment& environment, const std::string& folder) {
  const absl::Status status = EnsureOwnDirectory(*environment.env, folder, environment.uid);
  if (status.ok()) return status;
  return MakeError(v1::ErrorDetail::RESOURCE, StrCat("an artifact cannot be kept in ", folder, ": ", status.message(),
                                                     ". To keep it elsewhere, set KERNIX_CACHE_DIR."));
}

absl::StatusOr<std::string> DownloadArtifact(const Session& session, const Digest& digest, uint64_t size,
                                             Caller& caller) {
  GrpcCall call(*session.connection, "FetchArtifact", std::nullopt, caller);
  v1::FetchArtifactRequest request;
  request.set_artifact_digest(digest.Raw());
  call.Write(request, /*last=*/true);
  const absl::StatusOr<std::string> content = ReadStream(call, size);
  if (content.ok()) KERNIX_RETURN_IF_ERROR(FromCallStatus(call.status(), session.peer));
  if (content.ok() && DigestOf(*content) == digest) return content;
  return MakeError(v1::ErrorDetail::INTERNAL,
                   StrCat(session.peer, " sent other content than the artifact ", digest.Hex()));
}

}  // namespace kernix
