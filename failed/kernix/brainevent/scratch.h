// SPDX-License-Identifier: Apache-2.0
//
// BE::Scratch: memory for one call, the type of a `scratch:<bytes>` parameter.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <stddef.h>

#include "brainevent/internal/macros.h"

namespace BE {

// Uninitialised bytes: on the device for a CUDA function (aligned to 16), otherwise on the host (aligned to 64). The
// function may use them until it returns; on a device, also until the work that it has enqueued on its stream has run.
class Scratch {
 public:
  KERNIX_HD Scratch() noexcept {}
  KERNIX_HD Scratch(void* data, size_t size) noexcept : data_(data), size_(size) {}

  // Null if the size is 0.
  KERNIX_HD void* data() const noexcept { return data_; }
  KERNIX_HD size_t size() const noexcept { return size_; }

  template <typename T>
  KERNIX_HD T* as() const noexcept {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace BE
