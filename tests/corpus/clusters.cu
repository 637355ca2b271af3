// SPDX-License-Identifier: Apache-2.0
// A kernel with cluster dimensions, which reads its place in the cluster.
// @BE run
__global__ void __cluster_dims__(1, 1, 1) run(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] + static_cast<float>(__clusterDim().x + __clusterRelativeBlockRank());
}
