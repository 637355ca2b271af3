// SPDX-License-Identifier: Apache-2.0
#include "common/wire/statement.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/statement.pb.h"

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

absl::StatusOr<Statement> FromMessage(const internal::Statement& message) {
  Statement statement{.key = {}, .headers = {}, .files = {}, .detail = message.detail()};
  KERNIX_ASSIGN_OR_RETURN(statement.key, Digest::FromRaw(message.key()));
  for (const internal::Statement::Header& header : message.header()) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(header.digest()));
    statement.headers.push_back({header.name(), digest});
  }
  for (const internal::Statement::File& file : message.file()) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(file.digest()));
    statement.files.push_back({file.name(), digest, file.size()});
  }
  return statement;
}

}  // namespace

std::string EncodeStatement(const Statement& statement, const SigningKey* signs_with) {
  internal::Statement message;
  message.set_key(statement.key.Raw());
  for (const StatedHeader& header : statement.headers) {
    internal::Statement::Header& added = *message.add_header();
    added.set_name(header.name);
    added.set_digest(header.digest.Raw());
  }
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
  absl::StatusOr<Statement> statement = FromMessage(message);
  if (!statement.ok()) return Damaged();
  return statement;
}

}  // namespace kernix
