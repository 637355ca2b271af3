// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/blob_streams.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/remote/blob_names.h"
#include "daemon/remote/zstd_blob.h"

namespace kernix::remote {
namespace {

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

// An engine that has the blob already may stop reading and say the blob's whole size, or -1 of a compressed one.
bool IsComplete(const bytestream::WriteResponse& response, size_t sent, uint64_t size) {
  const int64_t committed = response.committed_size();
  return committed == -1 || committed == static_cast<int64_t>(sent) || committed == static_cast<int64_t>(size);
}

grpc::Status Send(Connection& connection, grpc::ClientContext& context, const std::string& name, std::string_view bytes,
                  uint64_t size) {
  bytestream::WriteResponse response;
  const auto writer = connection.streams().Write(&context, &response);
  SendPieces(connection, *writer, name, bytes);
  grpc::Status status = writer->Finish();
  if (!status.ok() || IsComplete(response, bytes.size(), size)) return status;
  return grpc::Status(grpc::StatusCode::ABORTED,
                      StrCat("it took ", response.committed_size(), " of ", bytes.size(), " bytes"));
}

}  // namespace

absl::StatusOr<exec::Content> ReadStream(Connection& connection, const Limits& limits, const exec::BlobDigest& digest,
                                         bool zstd) {
  const std::string name = DownloadName(connection.options().instance, digest, zstd);
  const uint64_t limit = zstd ? MostCompressedBytes(digest.size) : digest.size;
  std::string bytes;
  KERNIX_RETURN_IF_ERROR(connection.Call(limits, AskedToSend(digest), [&](grpc::ClientContext& context) {
    return Receive(connection, context, name, limit, bytes);
  }));
  if (zstd) {
    absl::StatusOr<std::string> plain = DecompressBlob(bytes, digest.size);
    if (!plain.ok()) return WrongBytes(connection.options(), digest);
    bytes = *std::move(plain);
  }
  if (exec::BlobDigestOf(bytes) != digest) return WrongBytes(connection.options(), digest);
  return exec::MakeContent(std::move(bytes));
}

absl::Status WriteStream(Connection& connection, const Limits& limits, const Blob& blob, bool zstd) {
  std::string compressed;
  if (zstd) {
    KERNIX_ASSIGN_OR_RETURN(compressed, CompressBlob(*blob.content));
  }
  const std::string_view bytes = zstd ? compressed : *blob.content;
  return connection.Call(limits, StrCat("take ", Describe(blob.digest)), [&](grpc::ClientContext& context) {
    // Another name for each try: an engine may still hold the part that an earlier one has sent.
    return Send(connection, context, UploadName(connection.options().instance, blob.digest, zstd), bytes,
                blob.digest.size);
  });
}

}  // namespace kernix::remote
