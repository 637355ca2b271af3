// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/token_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::remote {
namespace {

// gRPC ends the process over other characters in a header.
bool IsHeaderText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

constexpr std::string_view kBasic = "Basic";

// Names that begin with "grpc-" or end with "-bin" have a meaning of their own in gRPC.
bool IsHeaderName(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(),
                                 [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
  return plain && !name.empty() && !name.starts_with("grpc-") && !name.ends_with("-bin");
}

absl::Status Unusable(std::string message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, std::move(message)); }

}  // namespace

absl::StatusOr<TokenHeader> ParseTokenHeader(std::string_view text) {
  const size_t colon = text.find(':');
  TokenHeader header{.name = std::string(text.substr(0, colon)),
                     .scheme = colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1))};
  absl::StripAsciiWhitespace(&header.name);
  absl::StripAsciiWhitespace(&header.scheme);
  absl::AsciiStrToLower(&header.name);
  if (absl::EqualsIgnoreCase(header.scheme, ToAbsl(kBasic))) header.scheme = kBasic;
  if (IsHeaderName(header.name) && IsHeaderText(header.scheme)) return header;
  return Unusable(StrCat("token_header: \"", text,
                         "\" is no header for a token. Write its name, and the word before the token if there is one: ",
                         "\"authorization: Bearer\", \"authorization: Basic\", \"x-buildbuddy-api-key\"."));
}

absl::StatusOr<std::string> TokenFile::Read() const {
  absl::StatusOr<std::string> text = env_.ReadFile(path_);
  if (!text.ok()) return Unusable(StrCat("cannot read the token for the engine: ", text.status().message()));
  absl::StripAsciiWhitespace(&*text);
  if (header_.scheme == kBasic) {
    if (!absl::StrContains(*text, ':')) {
      return Unusable(StrCat(path_, " must hold USER:PASSWORD for the engine, because token_header says Basic"));
    }
    text = absl::Base64Escape(*text);
  }
  if (text->empty() || !IsHeaderText(*text)) {
    return Unusable(StrCat(path_, " must hold a token for the engine, and nothing else"));
  }
  return header_.scheme.empty() ? *std::move(text) : StrCat(header_.scheme, " ", *text);
}

absl::StatusOr<std::string> TokenFile::Value() {
  const MutexLock lock(mutex_);
  KERNIX_RETURN_IF_ERROR(Update());
  return value_;
}

uint64_t TokenFile::Version() {
  const MutexLock lock(mutex_);
  Update().IgnoreError();  // calls say what is wrong
  return version_;
}

absl::Status TokenFile::Update() {
  WatchedFile now = StateOf(env_, path_);
  if (!value_.empty() && settled_ && now == seen_) return absl::OkStatus();
  absl::StatusOr<std::string> value = Read();
  if (!value.ok() && value_.empty()) return value.status();
  if (!value.ok() && now != seen_) {
    Log(LogLevel::kWarning, "upstream_token_kept", {{"path", path_}, {"message", value.status().message()}});
  }
  if (value.ok() && *value != value_) {
    value_ = *std::move(value);
    ++version_;
  }
  settled_ = !now.identity || now.identity->SettledAt(env_.UnixMillis());
  seen_ = std::move(now);
  return absl::OkStatus();
}

}  // namespace kernix::remote
