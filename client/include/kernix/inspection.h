// SPDX-License-Identifier: Apache-2.0
//
// A look inside a module: what was compiled, PTX, machine code in words, and what its kernels use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

// What one kernel needs on one architecture. Sizes are in bytes.
struct KernelResources {
  std::string name;              // as C++ names it: "add(float const*, float*, int)"
  std::string symbol;            // as a profiler shows it
  std::string architecture;      // "sm_90"
  uint64_t registers = 0;        // of each thread
  uint64_t shared_memory = 0;    // of each block, as the source declares it; what a launch adds is not known here
  uint64_t stack_frame = 0;      // local memory of each thread
  uint64_t spill_stores = 0;     // what a thread writes to local memory for lack of registers,
  uint64_t spill_loads = 0;      // and reads from it
  uint64_t constant_memory = 0;  // in all banks
  uint64_t barriers = 0;         // __syncthreads() and its like
};

// What was compiled: the sources, then a handler for each function. With LoadOptions::separate, all units one after
// another, or that of the source `label`; NOT_FOUND, with the labels there are.
absl::StatusOr<std::string> GeneratedSource(const Module& module, std::string_view label = "");

// These are for CUDA modules that were loaded with LoadOptions::keep; others are INVALID_REQUEST errors, as is an
// `architecture` ("sm_90") that the module was not compiled for. Empty: the newest.
//
// The PTX that the machine code was made from.
absl::StatusOr<std::string> Ptx(const Module& module, std::string_view architecture = "");
// The machine code in words. An error says so where there was no nvdisasm with nvcc.
absl::StatusOr<std::string> Sass(const Module& module, std::string_view architecture = "");
// Of each kernel, by architecture. Those of relocatable device code (-rdc=true) are as before the device link.
absl::StatusOr<std::vector<KernelResources>> Resources(const Module& module);

// Writes what `module` was made from, what was kept, and its library into `directory`, which is made where it is
// missing: <name>.kernix.cu or .cpp, <name>.sm_90.ptx, <name>.sm_90.sass, <name>.sm_90.ptxas (what ptxas says of
// resources) and <name>.so. With separate units, their number stands behind the name: <name>.0.kernix.cu. Each file is
// written beside, then renamed. LOAD error: the library cannot be read any more; RESOURCE: the folder cannot be
// written.
absl::Status WriteBuildDirectory(const Module& module, const std::string& directory);

}  // namespace kernix
