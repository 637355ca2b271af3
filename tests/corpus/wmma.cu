// SPDX-License-Identifier: Apache-2.0
// A matrix product on tensor cores.
#include <cuda_fp16.h>
#include <mma.h>

// @BE run
__global__ void run(const float* x, float* y) {
  using namespace nvcuda;
  __shared__ __half a[256];
  __shared__ float c[256];
  a[threadIdx.x] = __float2half(x[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x < 32) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, a, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
  }
  __syncthreads();
  y[threadIdx.x] = c[threadIdx.x];
}
