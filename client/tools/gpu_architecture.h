// SPDX-License-Identifier: Apache-2.0
//
// The architecture of the GPU that this process would use first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix {

// What detection looks at.
struct GpuSystem {
  // One of them is there wherever the driver is: without any, nothing is opened.
  std::vector<std::string> device_files = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"};
  std::string nvml = "libnvidia-ml.so.1";
  std::string cuda = "libcuda.so.1";
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES; an empty one hides all
  std::optional<std::string> device_order;     // CUDA_DEVICE_ORDER
};

// "sm_90" for the first GPU that CUDA would show. Asks the driver's management library, which leaves the process as it
// was (no CUDA context; a later fork is safe); only where that does not answer, or where it cannot say which of several
// different GPUs CUDA counts as the first, CUDA itself. A TOOLCHAIN error says why there is none and what to pass.
absl::StatusOr<std::string> DetectGpuArchitecture(Env& env, const GpuSystem& system);

// The same of this process. An answer is kept; thread-safe.
absl::StatusOr<std::string> DetectGpuArchitecture();

}  // namespace kernix
