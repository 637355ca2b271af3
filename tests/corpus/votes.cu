// SPDX-License-Identifier: Apache-2.0
// Votes and matches of a warp.
// @BE run
__global__ void run(const float* x, float* y) {
  const unsigned all = __activemask();
  const unsigned positive = __ballot_sync(all, x[threadIdx.x] > 0);
  const unsigned same = __match_any_sync(all, static_cast<int>(x[threadIdx.x]));
  __syncwarp();
  y[threadIdx.x] = static_cast<float>(__popc(positive) + __ffs(same) + __any_sync(all, positive == 0));
}
