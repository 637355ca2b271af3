// SPDX-License-Identifier: Apache-2.0
//
// Messages of the Remote Execution API in the form that is digested. Internal to exec and remote.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "build/bazel/remote/execution/v2/remote_execution.pb.h"
#include "daemon/exec/blob.h"

namespace kernix::exec {

namespace reapi = build::bazel::remote::execution::v2;

inline reapi::Digest ToReapi(const BlobDigest& digest) {
  reapi::Digest message;
  message.set_hash(digest.hash.Hex());
  message.set_size_bytes(static_cast<int64_t>(digest.size));
  return message;
}

// Nothing if it is not a digest of SHA-256.
inline std::optional<BlobDigest> FromReapi(const reapi::Digest& message) {
  const absl::StatusOr<Digest> hash = Digest::FromHex(message.hash());
  if (!hash.ok() || message.size_bytes() < 0) return std::nullopt;
  return BlobDigest{*hash, static_cast<uint64_t>(message.size_bytes())};
}

// Protobuf writes messages without maps and unknown fields in the order of their field numbers. Adds the message to
// `messages`, unless that is null.
template <typename Message>
BlobDigest DigestOfMessage(const Message& message, std::map<BlobDigest, std::string>* messages = nullptr) {
  std::string bytes = message.SerializeAsString();
  const BlobDigest digest = BlobDigestOf(bytes);
  if (messages != nullptr) messages->emplace(digest, std::move(bytes));
  return digest;
}

}  // namespace kernix::exec
