// SPDX-License-Identifier: Apache-2.0
//
// The architecture of the GPU that this process would use first, and its driver.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix {

// The inputs of the detection.
struct GpuSystem {
  // Wherever the driver works, at least one of these exists. If none exists, nothing is opened.
  std::vector<std::string> device_files = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"};
  std::string nvml = "libnvidia-ml.so.1";
  std::string cuda = "libcuda.so.1";
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES; an empty value hides all GPUs
  std::optional<std::string> device_order;     // CUDA_DEVICE_ORDER
};

// Returns "sm_90" or the like for the first GPU that CUDA would show. Asks the driver's management library (NVML),
// which leaves the process unchanged (no CUDA context; a later fork is safe). Asks CUDA itself only if NVML does not
// answer, or cannot tell which of several different GPUs CUDA counts first. A TOOLCHAIN error says why there is no GPU
// and which option to pass.
absl::StatusOr<std::string> DetectGpuArchitecture(Env& env, const GpuSystem& system);

// The same for this process. Remembers the answer; thread-safe.
absl::StatusOr<std::string> DetectGpuArchitecture();

// The newest CUDA version that the machine's driver knows, 12040 for 12.4. 0: there is no driver.
unsigned CudaDriverVersion(Env& env, const GpuSystem& system);

}  // namespace kernix
