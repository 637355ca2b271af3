// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "client/runtime/cuda_driver.h"

namespace kernix {

// Makes a CUDA device current in this thread, as a kernel launch needs it, while it lives. Where the device is current
// already, nothing changes: also not a context of the caller's own on it.
class CurrentDevice {
 public:
  explicit CurrentDevice(const CudaDriver& driver) : driver_(driver) {}
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

  // Once. Nothing happens without a driver: there is no device then.
  absl::Status Enter(int ordinal);

 private:
  const CudaDriver& driver_;
  std::optional<int> entered_;  // a CUdevice
};

}  // namespace kernix
