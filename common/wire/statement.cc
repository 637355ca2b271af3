// SPDX-License-Identifier: Apache-2.0
#include "common/wire/statement.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr std::string_view kSignedPrefix = "kernix-shared-result\n";

std::string SignedBytes(std::string_view statement) { return StrCat(kSignedPrefix, statement); }

bool IsBelieved(const internal::SignedStatement& envelope, const TrustedKeys& trusted) {
  if (trusted.empty()) return true;
  const std::string bytes = SignedBytes(envelope.statement());
  return std::any_of(envelope.signature().begin(), envelope.signature().end(),
                     [&](const internal::SignedStatement::Signature& signature) {
                       return trusted.Accepts(signature.public_key(), bytes, signature.signature());
                     });
}

absl::Status Damaged() { return absl::DataLossError("the statement of a result is damaged"); }

absl::StatusOr<Statement> FromMessage(internal::Statement message) {
  Statement statement{.key = {}, .headers = {}, .files = {}, .detail = message.detail()};
  KERNIX_ASSIGN_OR_RETURN(statement.key, Digest::FromRaw(message.key()));
  KERNIX_ASSIGN_OR_RETURN(statement.headers, FromMessages(std::move(*message.mutable_header())));
  for (const internal::Statement::File& file : message.file()) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(file.digest()));
    statement.files.push_back({file.name(), digest, file.size()});
  }
  return statement;
}

}  // namespace

HeaderMessages ToMessages(const std::vector<StatedHeader>& headers) {
  HeaderMessages messages;
  for (const StatedHeader& header : headers) {
    internal::StatedHeader& added = *messages.Add();
    added.set_name(header.name);
    added.set_digest(header.digest.Raw());
  }
  return messages;
}

absl::StatusOr<std::vector<StatedHeader>> FromMessages(HeaderMessages messages) {
  std::vector<StatedHeader> headers;
  headers.reserve(static_cast<size_t>(messages.size()));
  for (internal::StatedHeader& header : messages) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(header.digest()));
    headers.push_back({std::move(*header.mutable_name()), digest});
  }
  return headers;
}

std::string EncodeStatement(const Statement& statement, const SigningKey* signs_with) {
  internal::Statement message;
  message.set_key(statement.key.Raw());
  *message.mutable_header() = ToMessages(statement.headers);
  for (const StatedFile& file : statement.files) {
    internal::Statement::File& added = *message.add_file();
    added.set_name(file.name);
    added.set_digest(file.digest.Raw());
    added.set_size(file.size);
  }
  message.set_detail(statement.detail);
  internal::SignedStatement envelope;
  envelope.set_statement(message.SerializeAsString());
  if (signs_with != nullptr) {
    internal::SignedStatement::Signature& signature = *envelope.add_signature();
    signature.set_public_key(signs_with->public_key());
    signature.set_signature(signs_with->Sign(SignedBytes(envelope.statement())));
  }
  return envelope.SerializeAsString();
}

absl::StatusOr<Statement> DecodeStatement(std::string_view bytes, const TrustedKeys& trusted) {
  internal::SignedStatement envelope;
  if (!envelope.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return Damaged();
  if (!IsBelieved(envelope, trusted)) return absl::PermissionDeniedError("no trusted key has signed it");
  internal::Statement message;
  if (!message.ParseFromString(envelope.statement())) return Damaged();
  absl::StatusOr<Statement> statement = FromMessage(std::move(message));
  if (!statement.ok()) return Damaged();
  return statement;
}

namespace {

constexpr size_t kPublicKeyBytes = 32;
constexpr size_t kSignatureBytes = 64;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using KeyContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

Key PublicKey(std::string_view raw) {
  return {EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(raw), raw.size()), EVP_PKEY_free};
}

// Empty if `key` is of another kind.
std::string RawPublicKey(EVP_PKEY* key) {
  std::string raw(kPublicKeyBytes, '\0');
  size_t size = raw.size();
  if (key == nullptr || EVP_PKEY_id(key) != EVP_PKEY_ED25519) return "";
  const int got = EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(raw.data()), &size);
  return got == 1 && size == kPublicKeyBytes ? raw : "";
}

}  // namespace

absl::StatusOr<SigningKey> SigningKey::Read(Env& env, const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env.Stat(path));
  if ((info.mode & 077) != 0) {
    return absl::InvalidArgumentError(
        StrCat(path, " is a private key that other users may read or write: chmod 600 ", path));
  }
  KERNIX_ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                                                      BIO_free);
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  const std::shared_ptr<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr),
                                      EVP_PKEY_free);
  std::string public_key = RawPublicKey(key.get());
  if (public_key.empty()) {
    return absl::InvalidArgumentError(StrCat(path,
                                             " is not an Ed25519 private key in PEM without a passphrase: make one "
                                             "with `openssl genpkey -algorithm ed25519`"));
  }
  return SigningKey(key, std::move(public_key));
}

std::string SigningKey::Sign(std::string_view bytes) const {
  const KeyContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  auto* key = static_cast<EVP_PKEY*>(key_.get());
  if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, Bytes(bytes),
                     bytes.size()) != 1) {
    return "";  // no memory; nobody accepts that
  }
  return signature;
}

absl::Status TrustedKeys::Add(std::string_view text) {
  std::string der;
  const bool is_base64 = absl::Base64Unescape(ToAbsl(text), &der);
  const unsigned char* at = Bytes(der);
  const Key key(is_base64 ? d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())) : nullptr, EVP_PKEY_free);
  std::string raw = RawPublicKey(key.get());
  if (raw.empty()) {
    return absl::InvalidArgumentError(StrCat("\"", text,
                                             "\" is not an Ed25519 public key: write the line between BEGIN and END "
                                             "that `openssl pkey -in KEY.pem -pubout` prints"));
  }
  keys_.insert(std::move(raw));
  return absl::OkStatus();
}

bool TrustedKeys::Accepts(std::string_view public_key, std::string_view bytes, std::string_view signature) const {
  if (!Has(public_key)) return false;
  const Key key = PublicKey(public_key);
  const KeyContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  return key != nullptr && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(bytes), bytes.size()) == 1;
}

}  // namespace kernix
