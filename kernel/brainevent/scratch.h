// SPDX-License-Identifier: Apache-2.0
//
// BE::Scratch: memory for one call, what a `scratch:<bytes>` parameter is.
#pragma once

#include <stddef.h>

#include "brainevent/internal/macros.h"

namespace BE {

// Bytes whose content is not defined, on the device of a CUDA function (aligned to 16), else on the host (aligned to
// 64). They are the function's until it returns; on a device also until what it has enqueued on its stream has run.
class Scratch {
 public:
  KERNIX_HD Scratch() noexcept {}
  KERNIX_HD Scratch(void* data, size_t size) noexcept : data_(data), size_(size) {}

  // Null for no bytes.
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
