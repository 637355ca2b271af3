// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver's functions, in an artifact that its driver need not be there for.
//
// libcuda.so.1 belongs to the driver, which many machines that build or only import kernels do not have. So no artifact
// asks the loader for it. Instead, it has short functions of these names: the first call opens the library, and each
// call goes on in the driver's function. Without a driver they return CUDA_ERROR_STUB_LIBRARY, as the library does that
// CUDA toolkits have for linkers.
#pragma once

#include <set>
#include <string_view>

#include "daemon/exec/action.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// Whether it has the form of the driver's names: cuInit, cuMemAlloc_v2, cuLaunchKernel_ptsz, but neither cudaMalloc nor
// cuMine. The forms and not one release's header decide, so that a load links the same wherever it is built.
bool IsDriverFunction(std::string_view name);

// Adds the ends of strings in `object` that are such names, up to some thousand. Its tables of names hold "cuInit" as
// the end of "my_cuInit" if it has both.
void AddDriverFunctions(std::string_view object, std::set<std::string_view>& names);

// The link `action` with assembler text for those functions of the driver that its objects and archives name; unchanged
// if they name none, or if the toolchain has no CUDA.
exec::Action WithDriverFunctions(exec::Action action, const toolchain::Toolchain& toolchain);

}  // namespace kernix::build
