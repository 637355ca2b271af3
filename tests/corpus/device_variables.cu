// SPDX-License-Identifier: Apache-2.0
// Variables in device memory, one of them static, one a template.
__device__ float table[4] = {1, 2, 3, 4};
static __device__ int steps = 3;
template <typename T>
__device__ T offset = T(7);

// @BE run
__global__ void run(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] * table[(threadIdx.x + steps) % 4] + offset<float>;
}
