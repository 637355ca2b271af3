// SPDX-License-Identifier: Apache-2.0
//
// The contents of a module: the compiled source, PTX, disassembled machine code, and the resources of its kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

// The resources of one kernel on one architecture. Sizes are in bytes.
struct KernelResources {
  std::string name;            // the C++ name: "add(float const*, float*, int)"
  std::string symbol;          // the symbol, as profilers show it
  std::string architecture;    // "sm_90"
  uint64_t registers = 0;      // per thread
  uint64_t shared_memory = 0;  // per block, declared statically; the compiler does not know how much a launch adds
  uint64_t stack_frame = 0;    // local memory per thread
  // Bytes that a thread writes to local memory because it lacks registers, and reads from it: the sum over the
  // instructions. Nullopt if the machine code does not say, as before CUDA 12.6.
  std::optional<uint64_t> spill_stores;
  std::optional<uint64_t> spill_loads;
  uint64_t constant_memory = 0;  // in all banks
  uint64_t barriers = 0;         // __syncthreads() and similar
};

// The compiled source: the sources, then a handler for each function. With LoadOptions::separate: all units one after
// another, or only the unit of the source `label`. NOT_FOUND lists the existing labels.
absl::StatusOr<std::string> GeneratedSource(const Module& module, std::string_view label = "");

// Ptx() and Sass() are for CUDA modules that were loaded with LoadOptions::keep. For other modules, and for an
// `architecture` ("sm_90") that the module was not compiled for, they return INVALID_REQUEST. An empty `architecture`
// means the newest.
//
// The PTX from which the machine code was made.
absl::StatusOr<std::string> Ptx(const Module& module, std::string_view architecture = "");
// The disassembled machine code. Returns an error that says so if there was no nvdisasm beside nvcc.
absl::StatusOr<std::string> Sass(const Module& module, std::string_view architecture = "");

// The resources of each kernel, by architecture, for any CUDA module: read from the module's machine code. The figures
// of relocatable device code (-rdc=true) are those after the device link. With LoadOptions::keep, ptxas's report
// supplies the figures that older machine code lacks, and those of compressed machine code (LoadOptions::debug,
// -compress-mode). Without it, returns INVALID_REQUEST for compressed machine code. INVALID_REQUEST for C++ modules.
absl::StatusOr<std::vector<KernelResources>> Resources(const Module& module);

// The share of a multiprocessor's warps that run at once, 0 to 1, for a launch of `kernel` with blocks of `threads`
// threads and `dynamic_shared_memory` bytes for each block. 0 if such a block does not fit. Nullopt if the limits of
// its architecture are not known.
std::optional<double> Occupancy(const KernelResources& kernel, uint64_t threads, uint64_t dynamic_shared_memory = 0);

// Writes the module's generated source, kept files and library to `directory`, which it creates if necessary:
// <name>.kernix.cu or .cpp, <name>.sm_90.ptx, <name>.sm_90.sass, <name>.sm_90.ptxas (the resource report of ptxas) and
// <name>.so. With separate units, the unit's number follows the name: <name>.0.kernix.cu. Each file is written under a
// temporary name, then renamed. Returns LOAD if the library can no longer be read, and RESOURCE if the folder cannot be
// written.
absl::Status WriteBuildDirectory(const Module& module, const std::string& directory);

}  // namespace kernix
