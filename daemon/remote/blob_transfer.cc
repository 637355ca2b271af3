// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/blob_transfer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/exec/remote_execution.h"

namespace kernix::remote {

namespace {

// The default limit of gRPC for a message, less room for the fields around the blobs.
constexpr uint64_t kMostBatchBytes = (uint64_t{4} << 20) - (uint64_t{64} << 10);
// Buildbarn names no limit, and in its example deployment refuses what is larger than 2 MiB.
constexpr uint64_t kUnnamedBatchBytes = (uint64_t{2} << 20) - (uint64_t{64} << 10);
// Beside a blob's bytes, a message has its digest (68 bytes and a size), lengths, perhaps a status.
constexpr uint64_t kOverhead = 128;

}  // namespace

uint64_t UsableBatchBytes(int64_t advertised) {
  return advertised <= 0 ? kUnnamedBatchBytes : std::min(kMostBatchBytes, static_cast<uint64_t>(advertised));
}

BlobBatches SplitIntoBatches(const std::vector<exec::BlobDigest>& digests, uint64_t max_batch_bytes) {
  BlobBatches split;
  uint64_t room = 0;
  for (size_t i = 0; i < digests.size(); ++i) {
    const uint64_t size = digests[i].size + kOverhead;
    if (size > max_batch_bytes) {
      split.streams.push_back(i);
      continue;
    }
    if (size > room) {
      split.batches.emplace_back();
      room = max_batch_bytes;
    }
    split.batches.back().push_back(i);
    room -= size;
  }
  return split;
}

namespace {

std::string Prefix(const std::string& instance) { return instance.empty() ? "" : StrCat(instance, "/"); }

std::string Place(const exec::BlobDigest& digest) { return StrCat("blobs/", digest.hash.Hex(), "/", digest.size); }

// A UUID of version 4.
std::string RandomUuid() {
  thread_local std::mt19937_64 random{(uint64_t{std::random_device{}()} << 32) | std::random_device{}()};
  const uint64_t high = (random() & ~uint64_t{0xF000}) | 0x4000;
  const uint64_t low = (random() & ~(uint64_t{3} << 62)) | (uint64_t{1} << 63);
  const auto hex = [](uint64_t value, int shift, uint64_t mask, absl::PadSpec width) {
    return absl::StrCat(absl::Hex((value >> shift) & mask, width));
  };
  return StrCat(hex(high, 32, 0xFFFFFFFF, absl::kZeroPad8), "-", hex(high, 16, 0xFFFF, absl::kZeroPad4), "-",
                hex(high, 0, 0xFFFF, absl::kZeroPad4), "-", hex(low, 48, 0xFFFF, absl::kZeroPad4), "-",
                hex(low, 0, 0xFFFFFFFFFFFF, absl::kZeroPad12));
}

}  // namespace

std::string DownloadName(const std::string& instance, const exec::BlobDigest& digest) {
  return StrCat(Prefix(instance), Place(digest));
}

std::string UploadName(const std::string& instance, const exec::BlobDigest& digest) {
  return StrCat(Prefix(instance), "uploads/", RandomUuid(), "/", Place(digest));
}

namespace {

// "blob 0123456789ab... (17 bytes)"
std::string Describe(const exec::BlobDigest& digest) {
  return StrCat("blob ", digest.hash.Hex().substr(0, 12), "... (", digest.size, " bytes)");
}

// For EngineError().
std::string AskedToSend(const exec::BlobDigest& digest) { return StrCat("send ", Describe(digest)); }

// The engine sent bytes that do not have this digest.
absl::Status WrongBytes(const UpstreamOptions& options, const exec::BlobDigest& digest) {
  return MakeError(v1::ErrorDetail::INTERNAL,
                   StrCat("the engine at ", options.address, " sent other bytes than ", Describe(digest),
                          " has. They are not used. Its storage, or the network, is damaged."));
}

// Its answer says nothing of this blob.
absl::Status LeftOut(const UpstreamOptions& options, const exec::BlobDigest& digest) {
  return MakeError(v1::ErrorDetail::INTERNAL, StrCat("the engine at ", options.address, " left out ", Describe(digest),
                                                     " of what it was asked for, without an error"));
}

namespace bytestream = google::bytestream;

constexpr size_t kChunkBytes = size_t{1} << 20;

// Receives at most `limit` bytes.
grpc::Status Receive(Connection& connection, grpc::ClientContext& context, const std::string& name, uint64_t limit,
                     std::string& bytes) {
  bytestream::ReadRequest request;
  request.set_resource_name(name);
  const auto reader = connection.streams().Read(&context, request);
  bytestream::ReadResponse response;
  bytes.clear();
  bytes.reserve(limit);
  bool fits = true;
  while (fits && reader->Read(&response)) {
    connection.counters().bytes_received.Add(response.data().size());
    fits = bytes.size() + response.data().size() <= limit;
    if (fits) bytes += response.data();
  }
  if (!fits) context.TryCancel();
  grpc::Status status = reader->Finish();
  return fits ? std::move(status) : grpc::Status(grpc::StatusCode::DATA_LOSS, "it sent more bytes than the blob has");
}

// Sends one piece after the other until all are sent, or the engine has heard enough.
void SendPieces(Connection& connection, grpc::ClientWriter<bytestream::WriteRequest>& writer, const std::string& name,
                std::string_view bytes) {
  bytestream::WriteRequest request;
  request.set_resource_name(name);
  for (size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    const std::string_view piece = bytes.substr(at, kChunkBytes);
    request.set_write_offset(static_cast<int64_t>(at));
    request.set_data(std::string(piece));
    request.set_finish_write(at + piece.size() == bytes.size());
    if (!writer.Write(request)) return;
    connection.counters().bytes_sent.Add(piece.size());
    request.clear_resource_name();
  }
  writer.WritesDone();
}

grpc::Status Send(Connection& connection, grpc::ClientContext& context, const std::string& name,
                  std::string_view bytes) {
  bytestream::WriteResponse response;
  const auto writer = connection.streams().Write(&context, &response);
  SendPieces(connection, *writer, name, bytes);
  grpc::Status status = writer->Finish();
  // An engine that has the blob already may stop reading, and says the blob's whole size.
  if (!status.ok() || response.committed_size() == static_cast<int64_t>(bytes.size())) return status;
  return grpc::Status(grpc::StatusCode::ABORTED,
                      StrCat("it took ", response.committed_size(), " of ", bytes.size(), " bytes"));
}

// The blob's bytes, checked against the digest. It takes no more memory than the digest says.
absl::StatusOr<exec::Content> ReadStream(Connection& connection, const Limits& limits, const exec::BlobDigest& digest) {
  const std::string name = DownloadName(connection.options().instance, digest);
  std::string bytes;
  KERNIX_RETURN_IF_ERROR(connection.Call(limits, AskedToSend(digest), [&](grpc::ClientContext& context) {
    return Receive(connection, context, name, digest.size, bytes);
  }));
  if (exec::BlobDigestOf(bytes) != digest) return WrongBytes(connection.options(), digest);
  return exec::MakeContent(std::move(bytes));
}

absl::Status WriteStream(Connection& connection, const Limits& limits, const Blob& blob) {
  return connection.Call(limits, StrCat("take ", Describe(blob.digest)), [&](grpc::ClientContext& context) {
    // Another name for each try: an engine may still hold the part that an earlier one has sent.
    return Send(connection, context, UploadName(connection.options().instance, blob.digest), *blob.content);
  });
}

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
    if (const auto said = exec::FromReapi(one.digest()); said != digest) {
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
  for (const exec::BlobDigest& digest : digests) *request.add_digests() = exec::ToReapi(digest);
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
    *one.mutable_digest() = exec::ToReapi(blob.digest);
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
    if (const auto digest = exec::FromReapi(message)) missing.insert(*digest);
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
      *request.add_blob_digests() = exec::ToReapi(*next);
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
    KERNIX_ASSIGN_OR_RETURN(blobs[wanted[i]], ReadStream(connection, limits, wanted[i]));
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
    KERNIX_RETURN_IF_ERROR(WriteStream(connection, limits, {all[i], std::move(content)}));
  }
  return absl::OkStatus();
}

}  // namespace kernix::remote
