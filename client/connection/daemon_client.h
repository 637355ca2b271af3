// SPDX-License-Identifier: Apache-2.0
//
// The functions of the client's connection that a load and kernixctl need, beyond the public interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/connection/endpoint.h"
#include "common/base/digest.h"
#include "kernix/client.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Returns the content of a header that the request named by digest. Called for headers that the daemon does not have
// yet.
using BlobProvider = std::function<absl::StatusOr<std::string>(const Digest&)>;

// Client::Create() creates one of these: every Client is a DaemonClient.
class DaemonClient : public Client {
 public:
  // Like Client::Create(), in an environment of the caller's choice.
  static absl::StatusOr<std::unique_ptr<DaemonClient>> Create(ClientEnvironment environment, ClientOptions options);

  // One call of the service, with one response: "GetStatus". Repeats it while the daemon is too busy, and once if the
  // daemon was lost. If there is no daemon, starts one, or without `start` returns kUnavailable.
  virtual absl::Status Call(std::string_view method, const google::protobuf::MessageLite& request, bool start,
                            google::protobuf::MessageLite& response) = 0;
  template <typename Response>
  absl::StatusOr<Response> Ask(std::string_view method, const google::protobuf::MessageLite& request,
                               bool start = false) {
    Response response;
    absl::Status status = Call(method, request, start, response);
    if (!status.ok()) return status;
    return response;
  }

  absl::StatusOr<v1::GetCacheStatsResponse> Stats(bool start = true) {
    return Ask<v1::GetCacheStatsResponse>("GetCacheStats", v1::GetCacheStatsRequest(), start);
  }

  // Where the time of the build went that made the entry of `key` (all 64 digits). kNotFound if there is no such entry,
  // kFailedPrecondition if it has no trace.
  absl::StatusOr<v1::BuildTrace> Trace(const std::string& key, bool start = true);

  // Says that a load follows soon. Takes no time and cannot fail.
  virtual void AnnounceLoad() {}

  // Runs one Load call to its end: finds or starts the daemon, uploads headers, and reports progress. If a shared
  // service lacks the toolchain, falls back to the user's own daemon, with a warning through `callbacks`; if no daemon
  // can be started, falls back to a oneshot daemon. If the daemon dies during the call, starts it again and repeats the
  // call once. If a callback forks, the child repeats the call. Errors carry the daemon's ErrorDetail.
  virtual absl::StatusOr<v1::LoadResult> SendLoad(const v1::LoadRequest& request, const BlobProvider& blobs,
                                                  const LoadCallbacks& callbacks) = 0;

  // The path of a file with the artifact's content that this process can open: the daemon's own file if possible,
  // otherwise a copy in this user's local store (<cache>/kernix/fetched/<digest>.so). The copy is streamed once and
  // checked against the digest.
  virtual absl::StatusOr<std::string> LocalArtifact(const v1::LoadResult& result) = 0;

  // The path of a folder of clients in this user's store, such as "headers". It need not exist: EnsureOwnDirectory()
  // makes it, and sees to it that only this user can change it.
  virtual absl::StatusOr<std::string> OwnFolder(const std::string& name) = 0;
};

// Returns the path, without links, of the artifact at `path`: a regular file of `size` bytes that belongs to root, this
// user or the machine's service, and that no other user can write to or replace. So the file at that path later is the
// file that was checked, and the loader can open it. Does not read the content.
//
// Returns kNotFound if the file is missing or is a different one, and kPermissionDenied if it may not be run or cannot
// be read. Thread-safe.
absl::StatusOr<std::string> CheckArtifact(const ClientEnvironment& environment, const std::string& path, uint64_t size);

// How often this process has purged a cache. After that, the artifacts of earlier loads may be gone.
uint64_t CacheRemovals();

}  // namespace kernix
