// SPDX-License-Identifier: Apache-2.0
// Tiles and reduction of cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

// @BE run
__global__ void run(const float* x, float* y) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int sum = cg::reduce(tile, static_cast<int>(x[threadIdx.x]), cg::plus<int>());
  y[threadIdx.x] = static_cast<float>(sum) + tile.shfl_xor(x[threadIdx.x], 3);
}
