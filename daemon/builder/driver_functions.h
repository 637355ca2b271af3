// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver's functions, in an artifact that its driver need not be there for.
//
// libcuda.so.1 belongs to the driver, which many machines that build or only import kernels do not have. So no artifact
// asks the loader for it. It has short functions of these names instead, which open the library when the first of them
// is called, and go on in the driver's own. Without a driver they return CUDA_ERROR_STUB_LIBRARY, as the library does
// that CUDA toolkits have for linkers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/env.h"
#include "daemon/exec/action.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// The link `action` with assembler text for those of the driver's functions that its objects and archives name, as far
// as the toolkit's cuda.h has them; unchanged if they name none, or if the toolchain has no CUDA. Which functions the
// driver has is not known if the toolchain is only described here: then all names that look like the driver's count.
exec::Action WithDriverFunctions(Env& env, exec::Action action, const toolchain::Toolchain& toolchain);

// The ends of strings in `object` that look like functions of the driver: "cuInit", "cuMemAlloc_v2". Its tables of
// names hold "cuInit" as the end of "my_cuInit" if it has both.
std::vector<std::string_view> NamesLikeTheDrivers(std::string_view object);

}  // namespace kernix::build
