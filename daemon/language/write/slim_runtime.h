// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for CUDA's cuda_runtime.h that includes only parts of it.
#pragma once

#include <string>
#include <vector>

#include "daemon/language/read/runtime_names.h"

namespace kernix::language {

// The text of a header `cuda_runtime.h` that includes the toolkit's headers for types, runtime API and launches, and
// `parts`, in the order of the toolkit's cuda_runtime.h. The compiler must find it before the toolkit's header; its
// folder must be the last one before the toolkit's, with nothing between. Works for the host's pass and for a device's.
// With -g or -G, use the whole header: debug information lists what nobody uses.
std::string SlimRuntimeHeader(RuntimeParts parts);

// Macros for the host compiler when it compiles what cudafe++ has written with such a header: that text includes
// crt/host_runtime.h, which would bring definitions of mathematical functions without their declarations.
std::vector<std::string> HostRuntimeDefinitions(RuntimeParts parts);

// RuntimeNames reads the output of nvcc's own preprocessing command of a pass (the host's, or that of an architecture,
// from its dry run) for the unit kRuntimeProbe, with kRuntimeTextFlag: once as it is, and once with the folder of a
// stand-in. Macros and include folders of the user must not be in that command.
inline constexpr char kRuntimeTextFlag[] = "-dD";
inline constexpr char kRuntimeProbe[] = "int kernix_counter = __COUNTER__;\n";  // tells how far headers have counted

}  // namespace kernix::language
