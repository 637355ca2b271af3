// SPDX-License-Identifier: Apache-2.0
// Code that depends on include guards of the whole runtime header.
#ifdef _GLIBCXX_CMATH
constexpr float kBy = 1;
#else
constexpr float kBy = 2;
#endif
#ifndef __MATH_FUNCTIONS_HPP__
#error "the runtime header has not declared the mathematical functions"
#endif

// @BE run
__global__ void run(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] * kBy; }
