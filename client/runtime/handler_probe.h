// SPDX-License-Identifier: Apache-2.0
//
// Asking a handler what it is before XLA sees it: a handler with a bad answer that is registered before JAX's backend
// starts breaks all of JAX in the process.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

// The traits that `handler` declares. A LOAD error when it does not answer XLA's metadata query with FFI API 0.1.
absl::StatusOr<uint32_t> ProbeHandler(Handler handler);

}  // namespace kernix
