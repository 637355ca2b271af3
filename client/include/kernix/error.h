// SPDX-License-Identifier: Apache-2.0
//
// What a status of this library says beyond its code and message.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace kernix {

enum class ErrorCategory {
  kInvalidRequest,  // bad tokens, annotation, signature, flag, name, size
  kToolchain,       // no compiler, an unusable one, an unsupported architecture, no GPU to compile for
  kCompilation,     // the compiler or the linker said no
  kLoad,            // the artifact does not open here
  kRegistration,    // a target name is taken, or its signature would change
  kUnreachable,     // no daemon, and none could be started
  kResource,        // no space, an unwritable store, a limit of time or memory
  kCancelled,
  kInternal,  // anything else
};

struct ErrorInfo {
  ErrorCategory category = ErrorCategory::kInternal;
  std::string compiler_output;  // kCompilation: all that the compiler or linker printed, with your own paths
  std::string command;          // kCompilation: the command that failed
  int exit_code = 0;            // kCompilation: its exit code
};

// `status` must not be OK.
ErrorInfo DescribeError(const absl::Status& status);

}  // namespace kernix
