// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/device_memory.h"

#include <cstdint>

#include "client/runtime/cuda_driver.h"

namespace kernix {

absl::StatusOr<void*> AllocateDeviceMemory(size_t size, void* stream) {
  const CudaDriver& driver = TheCudaDriver();
  if (driver.memory_allocate_async == nullptr || driver.memory_free_async == nullptr) {
    return absl::UnavailableError("no CUDA driver (libcuda.so.1, for CUDA 11.2 or newer) to provide device memory");
  }
  uint64_t address = 0;
  const int error = driver.memory_allocate_async(&address, size, stream);
  if (error != 0) return absl::ResourceExhaustedError(driver.Failure("allocate device memory", error));
  return reinterpret_cast<void*>(address);
}

absl::Status FreeDeviceMemory(void* data, void* stream) {
  const CudaDriver& driver = TheCudaDriver();
  const int error = driver.memory_free_async(reinterpret_cast<uint64_t>(data), stream);
  return error == 0 ? absl::OkStatus() : absl::ResourceExhaustedError(driver.Failure("free device memory", error));
}

}  // namespace kernix
