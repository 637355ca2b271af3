// SPDX-License-Identifier: Apache-2.0
//
// BE::Span: a sequence of values owned by other code. An array attribute arrives as a BE::Span<const T>, the arguments
// of `args...` as a BE::Span<const BE::Tensor>.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <stddef.h>

#include "brainevent/check.h"
#include "brainevent/internal/macros.h"

namespace BE {

// A pointer and a size. Trivially copyable. Handlers pass spans of host memory, which device code cannot read.
template <typename T>
class Span {
 public:
  KERNIX_HD constexpr Span() noexcept {}
  KERNIX_HD constexpr Span(T* data, size_t size) noexcept : data_(data), size_(size) {}

  KERNIX_HD constexpr T* data() const noexcept { return data_; }
  KERNIX_HD constexpr size_t size() const noexcept { return size_; }
  KERNIX_HD constexpr bool empty() const noexcept { return size_ == 0; }
  KERNIX_HD constexpr T* begin() const noexcept { return data_; }
  KERNIX_HD constexpr T* end() const noexcept { return data_ + size_; }

  // In host code, an index outside of the span throws CheckError.
  KERNIX_HD T& operator[](size_t i) const {
#if !defined(__CUDA_ARCH__)
    if (i >= size_) internal::FailNumber<CheckError>("BE::Span has no element", static_cast<long long>(i));
#endif
    return data_[i];
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace BE
