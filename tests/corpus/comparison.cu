// SPDX-License-Identifier: Apache-2.0
// A three-way comparison, whose result has a type of the library.
// flags: -std=c++20 --expt-relaxed-constexpr
#include <compare>

struct Version {
  int major;
  int minor;
  __host__ __device__ constexpr auto operator<=>(const Version&) const = default;
};

// @BE run
__global__ void run(const float* x, float* y) {
  const Version a{static_cast<int>(threadIdx.x) / 16, static_cast<int>(threadIdx.x) % 16};
  y[threadIdx.x] = x[threadIdx.x] + (a < Version{3, 4} ? 1 : 0);
}
