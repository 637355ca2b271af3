// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs and drivers can run an artifact.
#pragma once

#include <string>
#include <vector>

namespace kernix {

// The targets of an artifact's GPU code: "sm_90", "sm_90a", "sm_120f".
struct GpuTargets {
  std::vector<std::string> machine_code;
  std::vector<std::string> ptx;
  unsigned cuda_version = 0;  // of the toolkit that has made the PTX, 12040 for 12.4; 0: not known
  bool operator==(const GpuTargets&) const = default;
};

// How well the GPU of this architecture ("sm_86") can run code of `targets`, as the CUDA C++ Programming Guide
// has it: machine code runs on GPUs of its major number and at least its minor one; with "a" on its own architecture
// only, with "f" on its family. The driver compiles PTX for every later GPU, unless it has such a letter, too.
// 0: it cannot. The nearest machine code is best, before PTX of the newest architecture.
int FitFor(const GpuTargets& targets, const std::string& gpu);
inline bool RunsOn(const GpuTargets& targets, const std::string& gpu) { return FitFor(targets, gpu) > 0; }

// The CUDA version that the driver must have on this GPU: for machine code the toolkit's major one, for PTX the
// toolkit's own. 0: not known.
unsigned DriverFor(const GpuTargets& targets, const std::string& gpu);

// Whether `targets` have machine code for each of `asked`, as users write architectures: "sm_90", "9.0".
bool HasEach(const GpuTargets& targets, const std::vector<std::string>& asked);

}  // namespace kernix
