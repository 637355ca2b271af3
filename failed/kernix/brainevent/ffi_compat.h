// SPDX-License-Identifier: Apache-2.0
//
// For kernels that take XLA's own buffers: makes a BE::Tensor from an xla::ffi::AnyBuffer. This header needs XLA's
// headers (`jax.ffi.include_dir()`) and costs their compile time; no other part of kernix does.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/dtypes.h"
#include "brainevent/tensor.h"
#include "xla/ffi/api/ffi.h"

#if defined(__CUDACC__)
#include <cuda_runtime_api.h>
#endif

namespace BE {
namespace internal {

// Throws CheckError for an element type or a rank that BE::Tensor cannot hold.
inline Tensor buffer_to_tensor(xla::ffi::AnyBuffer buffer) {
  const DType dtype = xla_to_jkb_dtype(buffer.element_type());
  BE_CHECK(dtype != DType::Invalid) << "BE::Tensor cannot hold XLA data type "
                                    << static_cast<int>(buffer.element_type());
  const auto dimensions = buffer.dimensions();
  return Tensor(buffer.untyped_data(), dimensions.begin(), static_cast<int>(dimensions.size()), dtype);
}

inline Tensor result_buffer_to_tensor(xla::ffi::Result<xla::ffi::AnyBuffer> result) {
  return buffer_to_tensor(*result);
}

}  // namespace internal
}  // namespace BE
