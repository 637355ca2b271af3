// SPDX-License-Identifier: Apache-2.0
//
// Typed errors. All kernix functions return absl::Status. An error that a user should be able to distinguish carries a
// kernix.v1.ErrorDetail as its payload. The Python exceptions and the wire protocol use the same detail.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

using ErrorKind = v1::ErrorDetail::Kind;

// An error of `kind`. `message` tells the user what happened, where, and what to do. The code is that of the kind,
// unless `code` is another one.
absl::Status MakeError(ErrorKind kind, std::string_view message, absl::StatusCode code = absl::StatusCode::kOk);

// The same for a complete detail. If `detail.code` is zero, it is derived from the kind.
absl::Status MakeError(v1::ErrorDetail detail);

// A RESOURCE error for somebody who has too much under way: the same call succeeds later. kernix's clients repeat it
// after `retry_after`; zero: after half a second to a second, so that many processes do not come back together.
absl::Status MakeBusyError(std::string_view message, std::chrono::milliseconds retry_after = {});

// When to repeat what a MakeBusyError() has ended. Zero for any other status.
std::chrono::milliseconds RetryAfter(const absl::Status& status);

// A random time between half of `longest`, which must not be negative, and all of it: for pauses of callers that should
// not come back together.
std::chrono::milliseconds Jittered(std::chrono::milliseconds longest);

// The detail of `status`, which must not be OK. A status without a payload gets a kind that matches its code, or
// INTERNAL. The message may quote names, so characters that act on a terminal are escaped (see utf8.h).
v1::ErrorDetail GetErrorDetail(const absl::Status& status);

// The kind of GetErrorDetail().
ErrorKind KindOf(const absl::Status& status);

// `status` with `prefix` and ": " before its message. The code and the payload do not change; OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view prefix);

}  // namespace kernix
