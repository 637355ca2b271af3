// SPDX-License-Identifier: Apache-2.0
//
// A token, a key or a password in a file that somebody else, such as an orchestrator, replaces, and the header that
// carries it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix::remote {

// How engines want a token.
struct TokenHeader {
  std::string name;    // in lower case, as HTTP/2 has it
  std::string scheme;  // "Bearer", "Basic"; empty: the text stands alone

  bool operator==(const TokenHeader&) const = default;
};

// "NAME" or "NAME: SCHEME". INVALID_REQUEST says what is wrong.
absl::StatusOr<TokenHeader> ParseTokenHeader(std::string_view text);

// Thread-safe.
class TokenFile {
 public:
  // `env` must outlive it.
  TokenFile(Env& env, std::string path, TokenHeader header)
      : env_(env), path_(std::move(path)), header_(std::move(header)) {}

  const std::string& header_name() const { return header_.name; }

  // The header's value: the scheme and the file's text without the space around it; with Basic, where the text is
  // USER:PASSWORD, its base64. Reads the file only if it may have changed; if it cannot be read any more, or holds no
  // token, the last value stays. INVALID_REQUEST if there is none.
  absl::StatusOr<std::string> Value();

  // Grows whenever Value() is another one than before.
  uint64_t Version();

 private:
  absl::StatusOr<std::string> Read() const;
  absl::Status Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Env& env_;
  const std::string path_;
  const TokenHeader header_;
  Mutex mutex_;
  WatchedFile seen_ ABSL_GUARDED_BY(mutex_);
  bool settled_ ABSL_GUARDED_BY(mutex_) = false;
  std::string value_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kernix::remote
