// SPDX-License-Identifier: Apache-2.0
//
// Details of a status of this library, beyond its code and message.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kernix {

// The numbers of kernix.v1.ErrorDetail.Kind, of which it has two for the toolchain.
enum class ErrorCategory {
  kInvalidRequest = 1,  // bad tokens, annotation, signature, flag, name, size
  kToolchain,           // no compiler, an unusable one, an unsupported architecture, no GPU to compile for
  kCompilation,         // the compiler or the linker failed
  kLoad,                // the artifact cannot be opened here
  kRegistration,        // a target name is taken, or its traits would change
  kUnreachable,         // no daemon answers, and none could be started
  kResource,            // no space, a store that is not writable, a time or memory limit
  kCancelled,
  kInternal,        // anything else
  kNotCached = 11,  // the cache does not have it, and LoadPolicy::kCached forbids compiling it
};

struct ErrorInfo {
  ErrorCategory category = ErrorCategory::kInternal;
  std::string compiler_output;  // kCompilation: the complete output of the compiler or linker, with your own paths
  std::string command;          // kCompilation: the command that failed, as it ran; see SaveFailedCommand()
  int exit_code = 0;            // kCompilation: its exit code
};

// `status` must not be OK.
ErrorInfo DescribeError(const absl::Status& status);

// Writes the files of a kCompilation error's command to `folder`, and a script `run.sh` that runs it again, wherever
// you move the folder on this machine. Returns the script's path. Headers in include paths are not copied: links lead
// to their folders. INVALID_REQUEST if the error has no command to run again: no compiler reported it, or the sources
// have more than 32 MiB. RESOURCE if the folder cannot be written.
absl::StatusOr<std::string> SaveFailedCommand(const absl::Status& error, const std::string& folder);

}  // namespace kernix
