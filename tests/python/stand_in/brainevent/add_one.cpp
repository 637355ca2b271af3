// SPDX-License-Identifier: Apache-2.0
#include "brainevent/common.h"

// @BE add_one
void add_one(const BE::Tensor x, BE::Tensor y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = x.data_ptr<const float>()[i] + 1;
}
