// SPDX-License-Identifier: Apache-2.0
//
// The handlers of target names that a runtime knows but under which no code is live.
#pragma once

#include <cstdint>

#include "kernix/module.h"

namespace kernix {

// A handler that declares `traits` when a runtime asks for its metadata. It answers every call with an error that says
// that no kernel is loaded under the name.
Handler ReservedHandler(uint32_t traits);

// The handler of a CUDA function's name on the CPU: each call is an error that says where the function runs.
XLA_FFI_Error* CudaFunctionOnCpu(XLA_FFI_CallFrame* frame, const char* target);

}  // namespace kernix
