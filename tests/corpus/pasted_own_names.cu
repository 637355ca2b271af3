// SPDX-License-Identifier: Apache-2.0
// Names that ## puts together, all of its own.
#define OPERATION(name, op) \
  __device__ float apply_##name(float a, float b) { return a op b; }
OPERATION(plus, +)
OPERATION(times, *)

// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  y[i] = apply_plus(x[i], apply_times(x[i], x[255 - i]));
}
