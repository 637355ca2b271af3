// SPDX-License-Identifier: Apache-2.0
#include "common/base/digest.h"

// kernix calls the plain SHA functions, which OpenSSL deprecates but keeps. The first use of EVP reads the machine's
// openssl.cnf, which takes a millisecond in every client process, and sets up an OpenSSL that the host process may use
// for something else.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

// Eight bytes, least significant first, on every machine.
std::array<char, 8> LittleEndian(uint64_t value) {
  std::array<char, 8> bytes;
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFF);
    value >>= 8;
  }
  return bytes;
}

std::string_view View(const std::array<char, 8>& bytes) { return {bytes.data(), bytes.size()}; }

void UpdateWithLength(Sha256& sha, std::string_view text) {
  sha.Update(View(LittleEndian(text.size())));
  sha.Update(text);
}

}  // namespace

std::string Digest::Hex() const { return absl::BytesToHexString(Raw()); }

std::string Digest::Raw() const { return std::string(bytes.begin(), bytes.end()); }

absl::StatusOr<Digest> Digest::FromHex(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) {
    return absl::InvalidArgumentError(StrCat("a digest is 64 hexadecimal digits, not ", hex.size()));
  }
  for (size_t i = 0; i < digest.bytes.size(); ++i) {
    const char* const digits = &hex[2 * i];
    if (std::from_chars(digits, digits + 2, digest.bytes[i], 16).ptr != digits + 2) {
      return absl::InvalidArgumentError(
          StrCat("not a hexadecimal digest: \"", absl::CHexEscape({hex.data(), hex.size()}), "\""));
    }
  }
  return digest;
}

absl::StatusOr<Digest> Digest::FromRaw(std::string_view raw) {
  Digest digest;
  if (raw.size() != digest.bytes.size()) {
    return absl::InvalidArgumentError(StrCat("a raw digest is 32 bytes, not ", raw.size()));
  }
  std::copy(raw.begin(), raw.end(), digest.bytes.begin());
  return digest;
}

std::string ShortKey(const Digest& key) { return key.Hex().substr(0, 16); }

Digest DigestOf(std::string_view data) {
  Sha256 sha;
  sha.Update(data);
  return sha.Finish();
}

struct Sha256::Context {
  SHA256_CTX sha;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { SHA256_Init(&context_->sha); }
Sha256::~Sha256() = default;

void Sha256::Update(std::string_view data) { SHA256_Update(&context_->sha, data.data(), data.size()); }

Digest Sha256::Finish() {
  Digest digest;
  SHA256_Final(digest.bytes.data(), &context_->sha);
  return digest;
}

// Every field starts with a byte for its type, so a number never looks like a text of eight bytes.
CanonicalHasher::CanonicalHasher(std::string_view domain) { UpdateWithLength(sha_, domain); }

CanonicalHasher& CanonicalHasher::Field(std::string_view name, std::string_view value) {
  sha_.Update("T");
  UpdateWithLength(sha_, name);
  UpdateWithLength(sha_, value);
  return *this;
}

CanonicalHasher& CanonicalHasher::Field(std::string_view name, uint64_t value) {
  sha_.Update("N");
  UpdateWithLength(sha_, name);
  sha_.Update(View(LittleEndian(value)));
  return *this;
}

CanonicalHasher& CanonicalHasher::Field(std::string_view name, const Digest& value) {
  sha_.Update("D");
  UpdateWithLength(sha_, name);
  sha_.Update(value.Raw());
  return *this;
}

CanonicalHasher& CanonicalHasher::List(std::string_view name, uint64_t size) {
  sha_.Update("L");
  UpdateWithLength(sha_, name);
  sha_.Update(View(LittleEndian(size)));
  return *this;
}

Digest CanonicalHasher::Finish() { return sha_.Finish(); }

}  // namespace kernix
