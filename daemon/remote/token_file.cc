// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/token_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/strings.h"

namespace kernix::remote {
namespace {

// gRPC ends the process over other characters in a header.
bool IsHeaderText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

absl::StatusOr<std::string> TokenFile::Read() const {
  absl::StatusOr<std::string> text = env_.ReadFile(path_);
  if (!text.ok()) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("cannot read the token for the engine: ", text.status().message()));
  }
  absl::StripAsciiWhitespace(&*text);
  if (text->empty() || !IsHeaderText(*text)) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat(path_, " must hold a token for the engine, and nothing else"));
  }
  return *std::move(text);
}

absl::StatusOr<std::string> TokenFile::Token() {
  const MutexLock lock(mutex_);
  WatchedFile now = StateOf(env_, path_);
  if (!token_.empty() && settled_ && now == seen_) return token_;
  absl::StatusOr<std::string> token = Read();
  if (!token.ok() && token_.empty()) return token.status();
  if (!token.ok() && now != seen_) {
    Log(LogLevel::kWarning, "upstream_token_kept", {{"path", path_}, {"message", token.status().message()}});
  }
  if (token.ok()) token_ = *std::move(token);
  settled_ = !now.identity || now.identity->SettledAt(env_.UnixMillis());
  seen_ = std::move(now);
  return token_;
}

}  // namespace kernix::remote
