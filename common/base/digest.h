// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 digests, and the canonical serialisation from which keys are computed.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kernix {

// A SHA-256 digest: 32 bytes. Value type, ordered, hashable with absl.
struct Digest {
  std::array<uint8_t, 32> bytes{};

  // 64 lower-case hexadecimal digits.
  std::string Hex() const;

  // The 32 raw bytes, as protobuf fields carry them.
  std::string Raw() const;

  // INVALID_ARGUMENT unless `hex` is 64 hexadecimal digits.
  static absl::StatusOr<Digest> FromHex(std::string_view hex);

  // INVALID_ARGUMENT unless `raw` is 32 bytes.
  static absl::StatusOr<Digest> FromRaw(std::string_view raw);

  auto operator<=>(const Digest&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const Digest& d) {
    return H::combine(std::move(h), d.bytes);
  }
};

// How log lines name a load: the first digits of its key, which kernixctl takes, too.
std::string ShortKey(const Digest& key);

// SHA-256 of `data`.
Digest DigestOf(std::string_view data);

// Incremental SHA-256. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::string_view data);

  // Finishes the computation. Call it once.
  Digest Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Computes a digest over a sequence of named fields. The length of each name and value precedes it, so two different
// sequences never produce the same bytes. The names separate the fields, so a new field gets its own name and cannot be
// confused with an existing one.
class CanonicalHasher {
 public:
  // `domain` separates kinds of keys, e.g. "kernix-artifact-key-1".
  explicit CanonicalHasher(std::string_view domain);

  CanonicalHasher& Field(std::string_view name, std::string_view value);
  CanonicalHasher& Field(std::string_view name, uint64_t value);
  CanonicalHasher& Field(std::string_view name, const Digest& value);

  // Starts a list of `size` elements. The caller then adds each element with Field().
  CanonicalHasher& List(std::string_view name, uint64_t size);

  Digest Finish();

 private:
  Sha256 sha_;
};

}  // namespace kernix
