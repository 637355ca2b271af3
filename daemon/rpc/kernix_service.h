// SPDX-License-Identifier: Apache-2.0
//
// The RPCs, for the calls of one user. Each method validates, delegates, converts and logs; nothing else.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "daemon/cache/journal.h"
#include "daemon/exec/byte_quota.h"
#include "daemon/rpc/backend.h"
#include "kernix/v1/kernix.grpc.pb.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// Starts a call of `caller`: reads the request, runs it in a thread of its own, and streams events until it ends. The
// result deletes itself when gRPC is done with it. It stays inside `backend.gate` until its last message is sent.
grpc::ServerBidiReactor<v1::LoadClientMessage, v1::LoadEvent>* StartLoadCall(Backend& backend, IdentityPtr caller);

// Administrators see everybody's loads and cache, others their own; of the rest they see how much there is. Checks
// every toolchain, which runs a compiler if its files have changed.
absl::StatusOr<v1::GetStatusResponse> StatusFor(const Backend& backend, const Identity& caller);

// Load() uses gRPC's callback interface, which reports at once when the client leaves; the other methods use a thread.
// ListCache() writes its answer itself, so as to know when the client has read it.
class KernixService final
    : public v1::Kernix::WithCallbackMethod_Load<v1::Kernix::WithStreamedUnaryMethod_ListCache<v1::Kernix::Service>> {
 public:
  KernixService(Backend& backend, IdentityPtr caller) : backend_(backend), caller_(std::move(caller)) {}

  grpc::ServerBidiReactor<v1::LoadClientMessage, v1::LoadEvent>* Load(grpc::CallbackServerContext* context) override;

  grpc::Status GetInfo(grpc::ServerContext* context, const v1::GetInfoRequest* request,
                       v1::GetInfoResponse* response) override;
  grpc::Status FetchArtifact(grpc::ServerContext* context, const v1::FetchArtifactRequest* request,
                             grpc::ServerWriter<v1::ArtifactChunk>* writer) override;
  grpc::Status GetCacheStats(grpc::ServerContext* context, const v1::GetCacheStatsRequest* request,
                             v1::GetCacheStatsResponse* response) override;
  grpc::Status StreamedListCache(
      grpc::ServerContext* context,
      grpc::ServerUnaryStreamer<v1::ListCacheRequest, v1::ListCacheResponse>* stream) override;
  grpc::Status ListCache(grpc::ServerContext* context, const v1::ListCacheRequest* request,
                         v1::ListCacheResponse* response) override;
  grpc::Status GetTrace(grpc::ServerContext* context, const v1::GetTraceRequest* request,
                        v1::GetTraceResponse* response) override;
  grpc::Status PurgeCache(grpc::ServerContext* context, const v1::PurgeCacheRequest* request,
                          v1::PurgeCacheResponse* response) override;
  grpc::Status PinCache(grpc::ServerContext* context, const v1::PinCacheRequest* request,
                        v1::PinCacheResponse* response) override;
  grpc::Status VerifyCache(grpc::ServerContext* context, const v1::VerifyCacheRequest* request,
                           v1::VerifyCacheResponse* response) override;
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override;
  grpc::Status CancelLoad(grpc::ServerContext* context, const v1::CancelLoadRequest* request,
                          v1::CancelLoadResponse* response) override;
  grpc::Status GetMetrics(grpc::ServerContext* context, const v1::GetMetricsRequest* request,
                          v1::GetMetricsResponse* response) override;
  grpc::Status Reload(grpc::ServerContext* context, const v1::ReloadRequest* request,
                      v1::ReloadResponse* response) override;
  grpc::Status Shutdown(grpc::ServerContext* context, const v1::ShutdownRequest* request,
                        v1::ShutdownResponse* response) override;

 private:
  absl::Status SendArtifact(const v1::FetchArtifactRequest& request, grpc::ServerWriter<v1::ArtifactChunk>* writer);
  // Whether the caller may do `what` ("stop") to a shared daemon.
  absl::Status CheckAdministers(std::string_view what) const;
  // Of the entries that the caller may see: all of an administrator's daemon, or the caller's own.
  cache::TagFilter Visible(std::string name, std::string key_prefix) const;
  // What an answer of so many bytes holds until the client has read it. Waits for others of the caller's;
  // MakeBusyError() if they stay unread.
  absl::StatusOr<std::unique_ptr<exec::ByteQuota::Share>> AwaitRoom(uint64_t bytes,
                                                                    const grpc::ServerContext& context) const;
  absl::StatusOr<v1::BuildTrace> TraceOf(const Digest& key) const;
  absl::Status CheckMayHave(const Digest& artifact) const;
  absl::StatusOr<cache::TagFilter> FilterFor(const v1::PurgeCacheRequest& request) const;
  absl::Status Purge(const v1::PurgeCacheRequest& request, v1::PurgeCacheResponse& response);
  absl::Status Pin(const v1::PinCacheRequest& request, v1::PinCacheResponse& response);
  absl::Status Verify(const v1::VerifyCacheRequest& request, v1::VerifyCacheResponse& response);

  Backend& backend_;
  const IdentityPtr caller_;
};

}  // namespace kernix::server
