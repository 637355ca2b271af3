// SPDX-License-Identifier: Apache-2.0
//
// A bearer token in a file that somebody else replaces, as orchestrators do.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix::remote {

// Thread-safe.
class TokenFile {
 public:
  // `env` must outlive it.
  TokenFile(Env& env, std::string path) : env_(env), path_(std::move(path)) {}

  // The file's text without the space around it. Reads the file only if it may have changed; if it cannot be read any
  // more, or holds no token, the last token stays. INVALID_REQUEST if there is none.
  absl::StatusOr<std::string> Token();

 private:
  absl::StatusOr<std::string> Read() const;

  Env& env_;
  const std::string path_;
  Mutex mutex_;
  WatchedFile seen_ ABSL_GUARDED_BY(mutex_);
  bool settled_ ABSL_GUARDED_BY(mutex_) = false;
  std::string token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::remote
