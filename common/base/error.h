// SPDX-License-Identifier: Apache-2.0
//
// Typed errors. Everything inside kernix returns absl::Status; an error that a user should be able to tell from others
// carries a kernix.v1.ErrorDetail as payload. The Python exception tree and the wire use the same detail.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

using ErrorKind = v1::ErrorDetail::Kind;

// The status code that fits a kind: INVALID_REQUEST and COMPILATION are kInvalidArgument, TOOLCHAIN is
// kFailedPrecondition, RESOURCE kResourceExhausted, UNREACHABLE kUnavailable, CANCELLED kCancelled, and so on.
absl::StatusCode CodeForKind(ErrorKind kind);

// An error of `kind` with `message` for the person who reads it: what happened, where, what to do.
absl::Status MakeError(ErrorKind kind, std::string_view message);

// The same from a whole detail. `detail.code` is filled in from the kind when it is zero.
absl::Status MakeError(v1::ErrorDetail detail);

// The detail of `status`. One without a payload gets a kind that fits its code (INTERNAL when nothing else does). What
// acts on a terminal is escaped in the message, which may quote names: see utf8.h.
// `status` must not be OK.
v1::ErrorDetail GetErrorDetail(const absl::Status& status);

// The kind of GetErrorDetail().
ErrorKind KindOf(const absl::Status& status);

// `status` with `prefix` and ": " before its message; code and payload stay. OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view prefix);

}  // namespace kernix
