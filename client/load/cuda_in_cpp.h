// SPDX-License-Identifier: Apache-2.0
//
// Recognises CUDA in a load of C++ that has failed: what the compiler says about `__global__` does not help.
#pragma once

#include "absl/status/status.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// `error`, with advice if the compiler failed on sources that are CUDA.
absl::Status WithCudaAdvice(const v1::LoadRequest& request, const absl::Status& error);

}  // namespace kernix
