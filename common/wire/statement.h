// SPDX-License-Identifier: Apache-2.0
//
// A statement says which files are the result of a key. Nodes share results by statements, and a bundle has one for
// each kernel. Statements may be signed with Ed25519 (RFC 8032); keys are the files and texts that the `openssl`
// command makes.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "common/wire/statement.pb.h"

namespace kernix {

// A node's private key. Thread-safe.
class SigningKey {
 public:
  // Reads a PEM file, as `openssl genpkey -algorithm ed25519` writes it. INVALID_ARGUMENT if it is something else, or
  // if others may read it; else the status of Env::ReadFile().
  static absl::StatusOr<SigningKey> Read(Env& env, const std::string& path);

  // 64 bytes.
  std::string Sign(std::string_view bytes) const;

  // 32 bytes.
  const std::string& public_key() const { return public_key_; }

 private:
  SigningKey(std::shared_ptr<void> key, std::string public_key)
      : key_(std::move(key)), public_key_(std::move(public_key)) {}

  std::shared_ptr<void> key_;  // an EVP_PKEY
  std::string public_key_;
};

// Public keys whose signatures count. Thread-safe once it is filled.
class TrustedKeys {
 public:
  // Adds a key: the base64 line of the PEM file that `openssl pkey -pubout` writes. INVALID_ARGUMENT if it is something
  // else.
  absl::Status Add(std::string_view text);

  bool empty() const { return keys_.empty(); }
  bool Has(std::string_view public_key) const { return keys_.contains(public_key); }

  // Whether `public_key` is one of these, and `signature` is its signature of `bytes`.
  bool Accepts(std::string_view public_key, std::string_view bytes, std::string_view signature) const;

 private:
  std::set<std::string, std::less<>> keys_;  // 32 bytes each
};

// A header of the toolchain by its portable name, with its content.
struct StatedHeader {
  std::string name;
  Digest digest;
  bool operator==(const StatedHeader&) const = default;
};

// Headers in messages: of statements, and of what the cache keeps.
using HeaderMessages = google::protobuf::RepeatedPtrField<internal::StatedHeader>;
HeaderMessages ToMessages(const std::vector<StatedHeader>& headers);
// Some error if a digest is none.
absl::StatusOr<std::vector<StatedHeader>> FromMessages(HeaderMessages messages);

struct StatedFile {
  std::string name;
  Digest digest;
  uint64_t size = 0;
};

struct Statement {
  Digest key;
  std::vector<StatedHeader> headers;  // that the build has read, sorted by name
  std::vector<StatedFile> files;
  std::string detail;  // for the reader; not looked into
};

// Equal statements have equal bytes. `signs_with`: null for a statement without a signature.
std::string EncodeStatement(const Statement& statement, const SigningKey* signs_with);

// DATA_LOSS if `bytes` are no statement. PERMISSION_DENIED if there are `trusted` keys, and none has signed it.
absl::StatusOr<Statement> DecodeStatement(std::string_view bytes, const TrustedKeys& trusted);

}  // namespace kernix
