// SPDX-License-Identifier: Apache-2.0
//
// Queries a handler's metadata before XLA sees the handler. If a handler that answers wrongly is registered before
// JAX's backend starts, JAX stops working in the whole process.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

// The traits that `handler` declares. Returns a LOAD error if it does not answer XLA's metadata query with FFI API 0.1.
absl::StatusOr<uint32_t> ProbeHandler(Handler handler);

}  // namespace kernix
