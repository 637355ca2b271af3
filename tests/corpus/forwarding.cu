// SPDX-License-Identifier: Apache-2.0
// std::forward and std::move, which the runtime header includes, unnamed by an include.
// flags: --expt-relaxed-constexpr
template <typename F, typename... Values>
__device__ float Call(F&& f, Values&&... values) {
  return std::forward<F>(f)(std::forward<Values>(values)...);
}

// @BE run
__global__ void run(const float* x, float* y) {
  y[threadIdx.x] = Call([](float a, float b) { return a - b; }, x[threadIdx.x], std::move(x[255 - threadIdx.x]));
}
