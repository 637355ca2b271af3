// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/kernix_service.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/digest.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "common/wire/grpc_status.h"
#include "daemon/rpc/backend.h"

namespace kernix::server {
namespace {

// A fetch holds this much in memory, whatever the artifact's size and the client's speed, and as much again in gRPC.
constexpr size_t kChunkBytes = 128 << 10;

absl::Status NoSuchArtifact(const Digest& artifact) {
  return absl::NotFoundError(StrCat("this kernixd has no artifact ", artifact.Hex(), " of yours: load it again"));
}

absl::Status NoTrace(absl::StatusCode code, std::string_view message) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, message, code);
}

absl::Status Stream(ReadableFile& file, grpc::ServerWriter<v1::ArtifactChunk>& writer) {
  v1::ArtifactChunk chunk;
  std::string& data = *chunk.mutable_data();
  for (uint64_t offset = 0;; offset += data.size()) {
    data.resize(kChunkBytes);
    KERNIX_ASSIGN_OR_RETURN(const size_t count, file.ReadAt(offset, data));
    if (count == 0) return absl::OkStatus();
    data.resize(count);
    if (!writer.Write(chunk)) return absl::CancelledError("the client has disconnected");
  }
}

v1::CacheEntry ToProto(const cache::ListedEntry& listed) {
  const cache::Entry& entry = listed.entry;
  const cache::EntryDetail& detail = entry.detail;
  v1::CacheEntry proto;
  proto.set_key(entry.key.Raw());
  proto.set_name(listed.tag.name);
  proto.set_owner(ToNumber(listed.tag.owner));
  proto.set_language(detail.language());
  *proto.mutable_architecture() = detail.architecture();
  for (const v1::ResolvedFunction& function : detail.function()) proto.add_function(function.name());
  proto.set_size(entry.size);
  proto.set_created_unix_ms(entry.created_unix_ms);
  proto.set_last_used_unix_ms(listed.last_used_unix_ms);
  proto.set_hits(listed.hits);
  proto.set_artifact_digest(entry.artifact.Raw());
  proto.set_build_ms(detail.build_ms());
  proto.set_pinned(listed.pinned);
  return proto;
}

v1::CacheEntryDetail DetailOf(const cache::EntryDetail& kept, const std::string& path) {
  v1::CacheEntryDetail detail;
  *detail.mutable_function() = kept.function();
  *detail.mutable_build_option() = kept.build_option();
  detail.set_toolchain(kept.toolchain());
  detail.set_origin(kept.origin());
  detail.set_artifact_path(path);
  *detail.mutable_required_symbol_version() = kept.required_symbol_version();
  return detail;
}

}  // namespace

grpc::ServerBidiReactor<v1::LoadClientMessage, v1::LoadEvent>* KernixService::Load(grpc::CallbackServerContext*) {
  return StartLoadCall(backend_, caller_);
}

grpc::Status KernixService::GetInfo(grpc::ServerContext*, const v1::GetInfoRequest*, v1::GetInfoResponse* response) {
  LeaveLostStore(backend_);
  const exec::ExecutorLoad load = backend_.executor.load();
  response->set_version(Version());
  response->set_build_id(BuildId());
  response->set_protocol_version(kProtocolVersion);
  response->set_pid(getpid());
  response->set_uptime_ms(std::chrono::duration_cast<Duration>(backend_.env.Now() - backend_.started_at).count());
  response->set_store_directory(backend_.cache.directory());
  response->set_shared(backend_.options.shared);
  response->set_draining(backend_.gate.closed());
  response->set_running_jobs(load.running);
  response->set_queued_jobs(load.queued);
  if (!backend_.options.shared) {
    for (const std::string& store : backend_.cache.options().read_directories) response->add_read_store(store);
  }
  response->set_unwritable_store(backend_.cache.options().stands_in_for);
  return grpc::Status::OK;
}

grpc::Status KernixService::FetchArtifact(grpc::ServerContext*, const v1::FetchArtifactRequest* request,
                                          grpc::ServerWriter<v1::ArtifactChunk>* writer) {
  return ToGrpcStatus(SendArtifact(*request, writer));
}

absl::Status KernixService::SendArtifact(const v1::FetchArtifactRequest& request,
                                         grpc::ServerWriter<v1::ArtifactChunk>* writer) {
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(request.artifact_digest()));
  const absl::StatusOr<std::unique_ptr<UserLimit::Permit>> permit = backend_.fetches.Enter(*caller_);
  if (!permit.ok()) {
    backend_.metrics.NoteRefusal(Refusal::kFetches);
    return permit.status();
  }
  KERNIX_RETURN_IF_ERROR(CheckMayHave(digest));
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = backend_.cache.OpenBlob(digest);
  if (!file.ok()) return absl::IsNotFound(file.status()) ? NoSuchArtifact(digest) : file.status();
  return Stream(**file, *writer);
}

// To this caller, other users' artifacts do not exist.
absl::Status KernixService::CheckMayHave(const Digest& artifact) const {
  KERNIX_ASSIGN_OR_RETURN(const bool owns, backend_.cache.Owns(caller_->id(), artifact));
  return owns || caller_->IsAdministrator() ? absl::OkStatus() : NoSuchArtifact(artifact);
}

grpc::Status KernixService::GetCacheStats(grpc::ServerContext*, const v1::GetCacheStatsRequest*,
                                          v1::GetCacheStatsResponse* response) {
  *response = backend_.cache.Stats();
  if (auto holders = backend_.cache.Holders(); holders.ok()) {
    response->set_held_bytes((*holders)[caller_->id()].bytes);
  }
  return grpc::Status::OK;
}

// Answers can be large, and a client may leave them unread: what it does not read bounds what else it gets.
grpc::Status KernixService::StreamedListCache(
    grpc::ServerContext* context, grpc::ServerUnaryStreamer<v1::ListCacheRequest, v1::ListCacheResponse>* stream) {
  v1::ListCacheRequest request;
  if (!stream->Read(&request)) return {grpc::StatusCode::INTERNAL, "no request"};
  const absl::StatusOr<cache::ListWeight> weight = backend_.cache.Weigh(Visible(request.name(), request.key_prefix()));
  if (!weight.ok()) return ToGrpcStatus(weight.status());
  const auto room = AwaitRoom(weight->bytes, *context);
  if (!room.ok()) return ToGrpcStatus(room.status());
  v1::ListCacheResponse response;
  grpc::Status status = ListCache(context, &request, &response);
  if (status.ok()) stream->Write(response);
  return status;
}

absl::StatusOr<std::unique_ptr<exec::ByteQuota::Share>> KernixService::AwaitRoom(
    uint64_t bytes, const grpc::ServerContext& context) const {
  constexpr std::chrono::seconds kPatience{10};
  constexpr std::chrono::milliseconds kGlance{100};  // whether the client is still there
  const MonotonicTime deadline = backend_.env.Now() + kPatience;
  while (!context.IsCancelled()) {
    const MonotonicTime now = backend_.env.Now();
    if (now >= deadline) {
      backend_.metrics.NoteRefusal(Refusal::kLists);
      const std::string whose = StrCat("lists of the cache for user ", caller_->name());
      return MakeBusyError(StrCat(whose, " wait for clients that do not read them: end these clients"),
                           std::chrono::seconds(1));
    }
    if (auto room = backend_.lists.Await(caller_->id(), bytes, now + kGlance, nullptr)) return room;
  }
  return absl::CancelledError("the client has disconnected");
}

grpc::Status KernixService::ListCache(grpc::ServerContext*, const v1::ListCacheRequest* request,
                                      v1::ListCacheResponse* response) {
  const auto entries = backend_.cache.List(Visible(request->name(), request->key_prefix()));
  if (!entries.ok()) return ToGrpcStatus(entries.status());
  for (const cache::ListedEntry& listed : *entries) {
    v1::CacheEntry& added = *response->add_entry() = ToProto(listed);
    if (request->key_prefix().empty()) continue;
    *added.mutable_detail() = DetailOf(listed.entry.detail, backend_.cache.BlobPath(listed.entry.artifact));
  }
  return grpc::Status::OK;
}

cache::TagFilter KernixService::Visible(std::string name, std::string key_prefix) const {
  cache::TagFilter filter{.key_prefix = std::move(key_prefix)};
  if (!name.empty()) filter.name = std::move(name);
  if (!caller_->IsAdministrator()) filter.owner = caller_->id();
  return filter;
}

grpc::Status KernixService::GetTrace(grpc::ServerContext*, const v1::GetTraceRequest* request,
                                     v1::GetTraceResponse* response) {
  const absl::StatusOr<Digest> key = Digest::FromRaw(request->key());
  if (!key.ok()) return ToGrpcStatus(key.status());
  absl::StatusOr<v1::BuildTrace> trace = TraceOf(*key);
  if (!trace.ok()) return ToGrpcStatus(trace.status());
  *response->mutable_trace() = *std::move(trace);
  return grpc::Status::OK;
}

absl::StatusOr<v1::BuildTrace> KernixService::TraceOf(const Digest& key) const {
  KERNIX_ASSIGN_OR_RETURN(const cache::ListWeight visible, backend_.cache.Weigh(Visible("", key.Hex())));
  if (visible.entries == 0) {
    return NoTrace(absl::StatusCode::kNotFound,
                   StrCat("the store ", backend_.cache.directory(), " has no entry of yours with the key ", key.Hex(),
                          ", and so no trace of its build: load it again"));
  }
  KERNIX_ASSIGN_OR_RETURN(std::optional<v1::BuildTrace> trace, backend_.cache.TraceOf(key));
  if (trace) return *std::move(trace);
  return NoTrace(absl::StatusCode::kFailedPrecondition,
                 StrCat("the entry ", key.Hex(),
                        " has no trace: another node has built it. To build it here, load it with force_rebuild "
                        "(kernixctl compile --force)"));
}

grpc::Status KernixService::PurgeCache(grpc::ServerContext*, const v1::PurgeCacheRequest* request,
                                       v1::PurgeCacheResponse* response) {
  return ToGrpcStatus(Purge(*request, *response));
}

absl::Status KernixService::Purge(const v1::PurgeCacheRequest& request, v1::PurgeCacheResponse& response) {
  KERNIX_ASSIGN_OR_RETURN(cache::TagFilter filter, FilterFor(request));
  KERNIX_ASSIGN_OR_RETURN(const cache::Dropped dropped, backend_.cache.Purge(filter));
  if (!filter.name && !filter.owner && !filter.unused_since_unix_ms) backend_.builder.ForgetSteps();
  if (filter.spares_pinned) {
    filter.spares_pinned = false;
    KERNIX_ASSIGN_OR_RETURN(const cache::ListWeight left, backend_.cache.Weigh(filter));
    response.set_kept_entries(left.pinned);
  }
  response.set_removed_entries(dropped.tags);
  response.set_removed_bytes(dropped.bytes);
  LogOf(caller_->name(), LogLevel::kInfo, "purge",
        {{"user", caller_->name()}, {"name", request.name()}, {"entries", dropped.tags}, {"bytes", dropped.bytes}});
  return absl::OkStatus();
}

absl::StatusOr<cache::TagFilter> KernixService::FilterFor(const v1::PurgeCacheRequest& request) const {
  cache::TagFilter filter{.spares_pinned = !request.pinned()};
  if (!caller_->IsAdministrator()) filter.owner = caller_->id();
  if (request.older_than_ms() > 0) {
    filter.unused_since_unix_ms = backend_.env.UnixMillis() - static_cast<int64_t>(request.older_than_ms());
  }
  if (!request.name().empty()) {
    filter.name = request.name();
  } else if (!request.all() && !filter.unused_since_unix_ms) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, "say what to purge: a name, an age, or all");
  }
  return filter;
}

grpc::Status KernixService::PinCache(grpc::ServerContext*, const v1::PinCacheRequest* request,
                                     v1::PinCacheResponse* response) {
  return ToGrpcStatus(Pin(*request, *response));
}

absl::Status KernixService::Pin(const v1::PinCacheRequest& request, v1::PinCacheResponse& response) {
  cache::TagFilter filter{.name = request.name()};
  if (!caller_->IsAdministrator()) filter.owner = caller_->id();
  KERNIX_ASSIGN_OR_RETURN(const cache::Pinned pinned, backend_.cache.SetPinned(filter, !request.unpin()));
  if (pinned.tags == 0) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("no entry of yours has the name ", request.name(),
                            ": load it first; `kernixctl cache list` shows the names"),
                     absl::StatusCode::kNotFound);
  }
  response.set_entries(pinned.tags);
  response.set_pinned_bytes(pinned.bytes);
  response.set_most_bytes(pinned.most_bytes);
  LogOf(caller_->name(), LogLevel::kInfo, request.unpin() ? "unpin" : "pin",
        {{"user", caller_->name()}, {"name", request.name()}, {"entries", pinned.tags}});
  return absl::OkStatus();
}

grpc::Status KernixService::VerifyCache(grpc::ServerContext*, const v1::VerifyCacheRequest* request,
                                        v1::VerifyCacheResponse* response) {
  return ToGrpcStatus(Verify(*request, *response));
}

absl::Status KernixService::Verify(const v1::VerifyCacheRequest& request, v1::VerifyCacheResponse& response) {
  KERNIX_RETURN_IF_ERROR(CheckAdministers("verify the store of"));
  KERNIX_ASSIGN_OR_RETURN(response, backend_.cache.Verify(request));
  return absl::OkStatus();
}

absl::Status KernixService::CheckAdministers(std::string_view what) const {
  if (caller_->IsAdministrator()) return absl::OkStatus();
  backend_.metrics.NoteRefusal(Refusal::kAdministrator);
  return absl::PermissionDeniedError(
      StrCat("only its own user, root and members of its admin_group may ", what, " a shared kernixd"));
}

grpc::Status KernixService::GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                                      v1::GetStatusResponse* response) {
  absl::StatusOr<v1::GetStatusResponse> status = StatusFor(backend_, *caller_);
  if (!status.ok()) return ToGrpcStatus(status.status());
  *response = *std::move(status);
  return grpc::Status::OK;
}

grpc::Status KernixService::CancelLoad(grpc::ServerContext*, const v1::CancelLoadRequest* request,
                                       v1::CancelLoadResponse*) {
  const std::optional<UserId> owner = caller_->IsAdministrator() ? std::nullopt : std::optional(caller_->id());
  if (backend_.gate.Cancel(request->id(), owner)) return grpc::Status::OK;
  return ToGrpcStatus(absl::NotFoundError(StrCat("no load of yours has the number ", request->id(), ": it has ended")));
}

grpc::Status KernixService::GetMetrics(grpc::ServerContext*, const v1::GetMetricsRequest*,
                                       v1::GetMetricsResponse* response) {
  response->set_text(backend_.registry.Text());
  return grpc::Status::OK;
}

grpc::Status KernixService::Reload(grpc::ServerContext*, const v1::ReloadRequest*, v1::ReloadResponse* response) {
  if (const absl::Status status = CheckAdministers("reload"); !status.ok()) return ToGrpcStatus(status);
  absl::StatusOr<v1::ReloadResponse> report = backend_.reload();
  if (!report.ok()) return ToGrpcStatus(report.status());
  *response = *std::move(report);
  return grpc::Status::OK;
}

grpc::Status KernixService::Shutdown(grpc::ServerContext*, const v1::ShutdownRequest* request,
                                     v1::ShutdownResponse* response) {
  if (const absl::Status status = CheckAdministers("stop"); !status.ok()) return ToGrpcStatus(status);
  response->set_running_jobs(backend_.gate.inside());
  backend_.request_stop(request->reason().empty() ? "shutdown request" : request->reason(),
                        Duration(request->drain_timeout_ms()));
  return grpc::Status::OK;
}

}  // namespace kernix::server
