// SPDX-License-Identifier: Apache-2.0
// Containers and algorithms in host code.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "brainevent/common.h"

__global__ void add(const float* x, float* y, float by) { y[threadIdx.x] = x[threadIdx.x] + by; }

// @BE run
void run(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
  std::vector<float> values(8);
  std::iota(values.begin(), values.end(), 1.0f);
  const float sum = std::accumulate(values.begin(), values.end(), 0.0f);
  const float by = sum + *std::max_element(values.begin(), values.end());
  if (std::to_string(by).empty()) throw std::runtime_error("empty");
  add<<<1, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>(), by);
}
