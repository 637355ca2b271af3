// SPDX-License-Identifier: Apache-2.0
// Traits of the standard library in device code.
#include <type_traits>

template <typename T>
__device__ std::enable_if_t<std::is_floating_point_v<T>, float> Kind(T v) {
  return static_cast<float>(v);
}
template <typename T>
__device__ std::enable_if_t<std::is_integral<T>::value, float> Kind(T v) {
  return static_cast<float>(v) + 100;
}

// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = Kind(x[threadIdx.x]) + Kind(threadIdx.x); }
