// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "client/runtime/cuda_driver.h"

namespace kernix {

// Makes a CUDA device current in this thread during its lifetime, as a kernel launch requires. If the device is already
// current, nothing changes, so a context of the caller on this device stays current.
class CurrentDevice {
 public:
  explicit CurrentDevice(const CudaDriver& driver) : driver_(driver) {}
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

  // Call it once. Does nothing without a driver, because there is no device then.
  absl::Status Enter(int ordinal);

 private:
  const CudaDriver& driver_;
  std::optional<int> entered_;  // a CUdevice
};

}  // namespace kernix
