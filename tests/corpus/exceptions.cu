// SPDX-License-Identifier: Apache-2.0
// Host code that throws and catches.
#include "brainevent/common.h"

__global__ void add(const float* x, float* y, int by) { y[threadIdx.x] = x[threadIdx.x] + by; }

static int Checked(int64_t n) {
  if (n != 3) throw std::out_of_range("not three");
  return static_cast<int>(n);
}

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  int by = 1;
  try {
    by = Checked(x.ndim());
  } catch (const std::exception& error) {
    by = error.what()[0] == 'n' ? 5 : 6;
  }
  add<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>(), by);
}
