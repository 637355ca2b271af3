// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 digests and the canonical serialisation that keys are made of.
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

  // Ends the computation. Call once.
  Digest Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Builds a digest over a sequence of named fields. Each name and each value goes in with its length before it, so no
// two different sequences give the same bytes. The names make a key independent of how the writing code happens to be
// ordered today: a field that is added later gets a name of its own.
class CanonicalHasher {
 public:
  // `domain` separates kinds of keys, e.g. "kernix-artifact-key-1".
  explicit CanonicalHasher(std::string_view domain);

  CanonicalHasher& Field(std::string_view name, std::string_view value);
  CanonicalHasher& Field(std::string_view name, uint64_t value);
  CanonicalHasher& Field(std::string_view name, const Digest& value);

  // Marks the start of a list of `size` elements; each element is then added with Field().
  CanonicalHasher& List(std::string_view name, uint64_t size);

  Digest Finish();

 private:
  Sha256 sha_;
};

}  // namespace kernix
