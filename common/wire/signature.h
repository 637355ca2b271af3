// SPDX-License-Identifier: Apache-2.0
//
// Ed25519 signatures (RFC 8032) of shared results. Keys are the files and texts that the `openssl` command makes.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/env.h"

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

}  // namespace kernix
