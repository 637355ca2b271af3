// SPDX-License-Identifier: Apache-2.0
// __ldg() and cache hints, of numbers and of vectors.
// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  const float4 four = __ldg(reinterpret_cast<const float4*>(x) + i / 4);
  __stcs(y + i, __ldg(x + i) + four.x - four.w + __ldcg(x + (i ^ 1)));
}
