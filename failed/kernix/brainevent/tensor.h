// SPDX-License-Identifier: Apache-2.0
//
// BE::Tensor: a kernel's view of a JAX array.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/check.h"
#include "brainevent/dtypes.h"
#include "brainevent/internal/macros.h"

namespace BE {

inline constexpr int kMaxDim = 8;

// A view of a dense row-major array: pointer, shape, strides, element type. It owns nothing. It is trivially copyable,
// so it can be passed by value to a CUDA kernel, and every member works on host and device.
class Tensor {
 public:
  // No data, rank 0, DType::Invalid.
  KERNIX_HD Tensor() noexcept {}

  // Copies `shape`, which has `ndim` extents. Throws CheckError unless 0 <= ndim <= kMaxDim; in a unit that names
  // exceptions of <stdexcept>, throws std::out_of_range.
  KERNIX_HD Tensor(void* data, const int64_t* shape, int ndim, DType dtype) {
    if (ndim < 0 || ndim > kMaxDim)
      internal::FailNumber<internal::RankError>("BE::Tensor holds 0 to 8 dimensions, not", ndim);
    Assign(data, shape, ndim, dtype);
  }

  // Replaces this tensor. `ndim` must be 0 to kMaxDim.
  KERNIX_HD void Assign(void* data, const int64_t* shape, int ndim, DType dtype) noexcept {
    data_ = data;
    ndim_ = ndim;
    dtype_ = dtype;
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; --i) {
      shape_[i] = shape[i];
      strides_[i] = stride;
      stride *= shape[i];
    }
  }

  // May be null for an array without elements.
  KERNIX_HD void* data_ptr() const noexcept { return data_; }
  KERNIX_HD void* data() const noexcept { return data_; }

  // The same as a T*; does not check T against dtype().
  template <typename T>
  KERNIX_HD T* data_ptr() const noexcept {
    return static_cast<T*>(data_);
  }
  template <typename T>
  KERNIX_HD T* data() const noexcept {
    return static_cast<T*>(data_);
  }

  KERNIX_HD int ndim() const noexcept { return ndim_; }

  // The extent and the stride (in elements) of axis `i`. In host code, an axis that does not exist throws CheckError.
  KERNIX_HD int64_t shape(int i) const { return shape_[Axis(i)]; }
  KERNIX_HD int64_t size(int i) const { return shape_[Axis(i)]; }
  KERNIX_HD int64_t stride(int i) const { return strides_[Axis(i)]; }

  // Each array has `ndim()` values.
  KERNIX_HD const int64_t* shape_ptr() const noexcept { return shape_; }
  KERNIX_HD const int64_t* strides_ptr() const noexcept { return strides_; }

  KERNIX_HD DType dtype() const noexcept { return dtype_; }

  // The size in bytes of one element (0 for a type of less than a byte), and of all elements.
  KERNIX_HD size_t element_size() const noexcept { return dtype_size(dtype_); }
  KERNIX_HD size_t nbytes() const noexcept {
    return (static_cast<size_t>(numel()) * static_cast<size_t>(dtype_bits(dtype_)) + 7) / 8;
  }

  // The number of elements; 1 for a scalar.
  KERNIX_HD int64_t numel() const noexcept {
    int64_t count = 1;
    for (int i = 0; i < ndim_; ++i) count *= shape_[i];
    return count;
  }

  // numel() for APIs that take an int. Throws CheckError if it does not fit; in a unit that names exceptions of
  // <stdexcept>, throws std::overflow_error.
  KERNIX_HD int numel_checked_int() const {
    const int64_t count = numel();
    if (count > INT32_MAX) internal::FailNumber<internal::CountError>("more elements than an int can count:", count);
    return static_cast<int>(count);
  }

  // Always true for tensors that a handler makes. Handlers receive row-major arrays, unless the caller asked JAX for
  // another layout, and XLA does not report that layout to them.
  KERNIX_HD bool is_contiguous() const noexcept {
    int64_t expected = 1;
    for (int i = ndim_ - 1; i >= 0; --i) {
      if (strides_[i] != expected) return false;
      expected *= shape_[i];
    }
    return true;
  }

 private:
  KERNIX_HD int Axis(int i) const {
#if !defined(__CUDA_ARCH__)
    if (i < 0 || i >= ndim_) internal::FailNumber<CheckError>("BE::Tensor has no axis", i);
#endif
    return i;
  }

  void* data_ = nullptr;
  int64_t shape_[kMaxDim] = {};
  int64_t strides_[kMaxDim] = {};
  int ndim_ = 0;
  DType dtype_ = DType::Invalid;
};

}  // namespace BE
