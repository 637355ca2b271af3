// SPDX-License-Identifier: Apache-2.0
//
// Converts absl::Status to the exceptions of kernix._errors.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kernix::python {

// Throws the Python exception for the kind of `status`, which must not be OK. Needs the GIL.
[[noreturn]] void Throw(const absl::Status& status);

inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) Throw(status);
}

template <typename T>
T ValueOrThrow(absl::StatusOr<T> result) {
  if (!result.ok()) Throw(result.status());
  return *std::move(result);
}

}  // namespace kernix::python
