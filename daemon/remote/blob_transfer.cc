// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/blob_transfer.h"

#include <memory>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/remote/blob_batches.h"
#include "daemon/remote/blob_names.h"
#include "daemon/remote/blob_streams.h"
#include "daemon/remote/reapi_digest.h"

namespace kernix::remote {
namespace {

using Blobs = std::map<exec::BlobDigest, exec::Content>;

// A digest takes some 75 bytes of a message.
constexpr int kMostDigests = 20'000;

// The first blob of the answer to a batch that was refused decides what becomes of the call.
template <typename Responses>
grpc::Status StatusOfBatch(const grpc::Status& call, const Responses& responses) {
  if (!call.ok()) return call;
  for (const auto& one : responses) {
    if (one.status().code() == 0) continue;
    const std::string blob = StrCat("blob ", one.digest().hash(), ": ", one.status().message());
    return grpc::Status(static_cast<grpc::StatusCode>(one.status().code()), blob, one.status().SerializeAsString());
  }
  return grpc::Status::OK;
}

// `response` is asked for `wanted`; adds what it has to `blobs`.
absl::Status TakeBatch(const UpstreamOptions& options, const std::vector<exec::BlobDigest>& wanted,
                       reapi::BatchReadBlobsResponse& response, Blobs& blobs) {
  for (reapi::BatchReadBlobsResponse::Response& one : *response.mutable_responses()) {
    const exec::BlobDigest digest = exec::BlobDigestOf(one.data());
    if (const auto said = GetDigest(one.digest()); said != digest) {
      return WrongBytes(options, said.value_or(digest));
    }
    blobs[digest] = exec::MakeContent(std::move(*one.mutable_data()));
  }
  for (const exec::BlobDigest& digest : wanted) {
    if (!blobs.contains(digest)) return LeftOut(options, digest);
  }
  return absl::OkStatus();
}

absl::Status ReadBatch(Connection& connection, const Limits& limits, const std::vector<exec::BlobDigest>& digests,
                       Blobs& blobs) {
  reapi::BatchReadBlobsRequest request;
  request.set_instance_name(connection.options().instance);
  for (const exec::BlobDigest& digest : digests) SetDigest(digest, *request.add_digests());
  reapi::BatchReadBlobsResponse response;
  const std::string asked = digests.size() == 1 ? AskedToSend(digests[0]) : StrCat("send ", digests.size(), " blobs");
  KERNIX_RETURN_IF_ERROR(connection.Call(limits, asked, [&](grpc::ClientContext& context) {
    const grpc::Status status = connection.storage().BatchReadBlobs(&context, request, &response);
    for (const auto& one : response.responses()) connection.counters().bytes_received.Add(one.data().size());
    return StatusOfBatch(status, response.responses());
  }));
  return TakeBatch(connection.options(), digests, response, blobs);
}

absl::Status WriteBatch(Connection& connection, const Limits& limits, const std::vector<Blob>& blobs) {
  reapi::BatchUpdateBlobsRequest request;
  request.set_instance_name(connection.options().instance);
  uint64_t bytes = 0;
  for (const Blob& blob : blobs) {
    reapi::BatchUpdateBlobsRequest::Request& one = *request.add_requests();
    SetDigest(blob.digest, *one.mutable_digest());
    one.set_data(blob.content->data(), blob.content->size());
    bytes += blob.content->size();
  }
  return connection.Call(limits, StrCat("take ", blobs.size(), " blobs"), [&](grpc::ClientContext& context) {
    reapi::BatchUpdateBlobsResponse response;
    const grpc::Status status = connection.storage().BatchUpdateBlobs(&context, request, &response);
    connection.counters().bytes_sent.Add(bytes);
    return StatusOfBatch(status, response.responses());
  });
}

std::vector<exec::BlobDigest> Pick(const std::vector<exec::BlobDigest>& all, const std::vector<size_t>& indexes) {
  std::vector<exec::BlobDigest> picked;
  for (const size_t i : indexes) picked.push_back(all[i]);
  return picked;
}

absl::Status AddMissing(Connection& connection, const Limits& limits, const reapi::FindMissingBlobsRequest& request,
                        std::set<exec::BlobDigest>& missing) {
  reapi::FindMissingBlobsResponse response;
  KERNIX_RETURN_IF_ERROR(connection.Call(limits, StrCat("say which of ", request.blob_digests_size(), " blobs it has"),
                                         [&](grpc::ClientContext& context) {
                                           return connection.storage().FindMissingBlobs(&context, request, &response);
                                         }));
  for (const reapi::Digest& message : response.missing_blob_digests()) {
    if (const auto digest = GetDigest(message)) missing.insert(*digest);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::set<exec::BlobDigest>> FindMissing(Connection& connection, const Limits& limits,
                                                       const std::set<exec::BlobDigest>& digests) {
  std::set<exec::BlobDigest> missing;
  for (auto next = digests.begin(); next != digests.end();) {
    reapi::FindMissingBlobsRequest request;
    request.set_instance_name(connection.options().instance);
    for (; next != digests.end() && request.blob_digests_size() < kMostDigests; ++next) {
      SetDigest(*next, *request.add_blob_digests());
    }
    KERNIX_RETURN_IF_ERROR(AddMissing(connection, limits, request, missing));
  }
  return missing;
}

absl::StatusOr<Blobs> ReadBlobs(Connection& connection, const Limits& limits, const UpstreamFacts& facts,
                                const std::set<exec::BlobDigest>& digests) {
  static const exec::BlobDigest kEmpty = exec::BlobDigestOf("");
  Blobs blobs;
  std::vector<exec::BlobDigest> wanted;
  for (const exec::BlobDigest& digest : digests) {
    if (digest == kEmpty) {
      blobs[digest] = exec::MakeContent("");
    } else {
      wanted.push_back(digest);
    }
  }
  const BlobBatches split = SplitIntoBatches(wanted, facts.max_batch_bytes);
  for (const std::vector<size_t>& batch : split.batches) {
    KERNIX_RETURN_IF_ERROR(ReadBatch(connection, limits, Pick(wanted, batch), blobs));
  }
  for (const size_t i : split.streams) {
    KERNIX_ASSIGN_OR_RETURN(blobs[wanted[i]], ReadStream(connection, limits, wanted[i], facts.zstd));
  }
  return blobs;
}

absl::Status WriteBlobs(Connection& connection, const Limits& limits, const UpstreamFacts& facts,
                        const std::set<exec::BlobDigest>& digests, const LoadBlob& load) {
  const std::vector<exec::BlobDigest> all(digests.begin(), digests.end());
  const BlobBatches split = SplitIntoBatches(all, facts.max_batch_bytes);
  for (const std::vector<size_t>& batch : split.batches) {
    std::vector<Blob> blobs;
    for (const size_t i : batch) {
      KERNIX_ASSIGN_OR_RETURN(exec::Content content, load(all[i]));
      blobs.push_back({all[i], std::move(content)});
    }
    KERNIX_RETURN_IF_ERROR(WriteBatch(connection, limits, blobs));
  }
  for (const size_t i : split.streams) {
    KERNIX_ASSIGN_OR_RETURN(exec::Content content, load(all[i]));
    KERNIX_RETURN_IF_ERROR(WriteStream(connection, limits, {all[i], std::move(content)}, facts.zstd));
  }
  return absl::OkStatus();
}

}  // namespace kernix::remote
