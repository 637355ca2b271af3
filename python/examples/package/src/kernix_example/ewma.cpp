// SPDX-License-Identifier: Apache-2.0
#include "brainevent/common.h"

// The moving average of each row: y[t] = y[t-1] + alpha (x[t] - y[t-1]).
// @BE ewma
void ewma(BE::In<float, 2> x, BE::Out<float, 2> y, float alpha) {
    for (int64_t row = 0; row < x.shape(0); ++row) {
        const float* in = x.data() + row * x.shape(1);
        float* out = y.data() + row * x.shape(1);
        float mean = x.shape(1) > 0 ? in[0] : 0.0f;
        for (int64_t t = 0; t < x.shape(1); ++t) out[t] = mean += alpha * (in[t] - mean);
    }
}
