// SPDX-License-Identifier: Apache-2.0
//
// Memory of the current CUDA device, from the driver's own allocator.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kernix {

// Allocates `size` bytes, aligned to 256, for work that is enqueued on `stream` (a CUstream) from now on. Returns
// UNAVAILABLE without a driver.
absl::StatusOr<void*> AllocateDeviceMemory(size_t size, void* stream);

// Frees the memory once the work that is already enqueued on `stream` has run. Does not wait.
absl::Status FreeDeviceMemory(void* data, void* stream);

}  // namespace kernix
