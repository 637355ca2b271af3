// SPDX-License-Identifier: Apache-2.0
// Asks whether an expression compiles, so that a missing overload changes the answer.
#include <type_traits>

template <typename T, typename = void>
struct HasSqrt {
  static constexpr bool value = false;
};
template <typename T>
struct HasSqrt<T, decltype(void(sqrt(T())))> {
  static constexpr bool value = true;
};
struct Unrelated {};

// @BE run
__global__ void run(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] + (HasSqrt<float>::value ? 1 : 2) + (HasSqrt<Unrelated>::value ? 10 : 20);
}
