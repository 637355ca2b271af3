// SPDX-License-Identifier: Apache-2.0
#include "brainevent/common.h"

__global__ void average(const float* x, float* y, int64_t rows, int64_t steps, float alpha) {
    const int64_t row = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (row >= rows || steps == 0) return;
    float mean = x[row * steps];
    for (int64_t t = 0; t < steps; ++t) y[row * steps + t] = mean += alpha * (x[row * steps + t] - mean);
}

// The moving average of each row: y[t] = y[t-1] + alpha (x[t] - y[t-1]).
// @BE ewma
void ewma(BE::In<float, 2> x, BE::Out<float, 2> y, float alpha, cudaStream_t stream) {
    const int64_t rows = x.shape(0);
    if (rows == 0) return;
    average<<<(rows + 255) / 256, 256, 0, stream>>>(x.data(), y.data(), rows, x.shape(1), alpha);
    BE_CHECK_KERNEL_LAUNCH();
}
