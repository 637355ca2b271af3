// SPDX-License-Identifier: Apache-2.0
// Structured bindings of arrays and structs.
struct Split {
  float whole;
  float rest;
};
__device__ Split Parts(float v) {
  const float whole = static_cast<float>(static_cast<int>(v));
  return {whole, v - whole};
}

// @BE run
__global__ void run(const float* x, float* y) {
  const auto [whole, rest] = Parts(x[threadIdx.x]);
  const float both[2] = {whole, rest};
  const auto& [first, second] = both;
  y[threadIdx.x] = first * 10 + second;
}
