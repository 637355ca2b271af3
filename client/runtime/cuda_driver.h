// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver as call frames use it: its functions, the current device, and the device's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kernix {

// The CUDA driver functions that call frames need. They return 0 for success; see the driver's reference manual. A
// pointer is null if there is no driver, or if the driver lacks the function.
struct CudaDriver {
  int (*init)(unsigned flags) = nullptr;
  int (*get_error_string)(int error, const char** text) = nullptr;
  int (*memory_allocate_async)(uint64_t* address, size_t size, void* stream) = nullptr;
  int (*memory_free_async)(uint64_t address, void* stream) = nullptr;
  int (*context_get_device)(int* device) = nullptr;
  int (*context_push_current)(void* context) = nullptr;
  int (*context_pop_current)(void** context) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*primary_context_retain)(void** context, int device) = nullptr;
  int (*primary_context_release)(int device) = nullptr;

  // "the CUDA driver could not <what>: <its words> (<error>)".
  std::string Failure(const char* what, int error) const;
};

// The functions of libcuda.so.1, which stays open.
const CudaDriver& TheCudaDriver();

// Makes a CUDA device current in this thread during its lifetime, as a kernel launch requires. If the device is already
// current, nothing changes, so a context of the caller on this device stays current.
class CurrentDevice {
 public:
  explicit CurrentDevice(const CudaDriver& driver) : driver_(driver) {}
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

  // Call it once. Does nothing without a driver, because there is no device then.
  absl::Status Enter(int ordinal);

 private:
  const CudaDriver& driver_;
  std::optional<int> entered_;  // a CUdevice
};

// Allocates `size` bytes of the current CUDA device, aligned to 256, from the driver's own allocator, for work that is
// enqueued on `stream` (a CUstream) from now on. Returns UNAVAILABLE without a driver.
absl::StatusOr<void*> AllocateDeviceMemory(size_t size, void* stream);

// Frees the memory once the work that is already enqueued on `stream` has run. Does not wait.
absl::Status FreeDeviceMemory(void* data, void* stream);

}  // namespace kernix
