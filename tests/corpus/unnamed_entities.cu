// SPDX-License-Identifier: Apache-2.0
// An unnamed namespace, unnamed types and statics, whose symbols carry an id of the unit.
namespace {
struct Weights {
  float a = 2;
};
__device__ float Weigh(Weights w, float v) { return w.a * v; }
__constant__ float kShift = 3;
__global__ void inner(const float* x, float* y) { y[threadIdx.x] = Weigh({}, x[threadIdx.x]) + kShift; }
}  // namespace

#include "brainevent/common.h"

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  inner<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>());
}
