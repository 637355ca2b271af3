// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

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

}  // namespace kernix
