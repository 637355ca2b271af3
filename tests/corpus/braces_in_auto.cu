// SPDX-License-Identifier: Apache-2.0
// auto from braces is a std::initializer_list.
// @BE run
__global__ void run(const float* x, float* y) {
  auto list = {1.0f, 2.0f};
  y[threadIdx.x] = x[threadIdx.x] * static_cast<float>(sizeof(list));
}
