// SPDX-License-Identifier: Apache-2.0
// A block's reduction of CUB.
#include <cub/block/block_reduce.cuh>

// @BE run
__global__ void run(const float* x, float* y) {
  using Reduce = cub::BlockReduce<int, 256>;
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum(static_cast<int>(x[threadIdx.x]));
  if (threadIdx.x == 0) y[0] = static_cast<float>(sum);
  if (threadIdx.x != 0) y[threadIdx.x] = x[threadIdx.x];
}
