// SPDX-License-Identifier: Apache-2.0
//
// BE::In and BE::Out: arrays of one element type, as a kernel takes them. Each call is checked, by JAX or without:
//
//   // @BE add
//   void add(BE::In<float> x, BE::In<float, 2> w, BE::Out<float> y) {
//     for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i] + w(i, 0);
//   }
#pragma once

#include "brainevent/tensor.h"

namespace BE {

inline constexpr int kAnyRank = -1;

namespace internal {

// A view of a dense row-major array of `T`, with `kRank` dimensions or, with kAnyRank, 0 to kMaxDim. It owns nothing.
// It is trivially copyable, so it can be passed by value to a CUDA kernel, and every member works on host and device.
template <typename T, int kRank>
class View {
  static_assert(kRank >= kAnyRank && kRank <= kMaxDim, "an array has 0 to 8 dimensions");

 public:
  using value_type = T;

  // No data, no elements.
  KERNIX_HD View() noexcept {}

  // `tensor` must hold elements of the type `T` and have `kRank` dimensions; handlers check that.
  KERNIX_HD explicit View(const Tensor& tensor) noexcept
      : data_(tensor.data_ptr<T>()), size_(tensor.numel()), ndim_(tensor.ndim()) {
    for (int i = 0; i < ndim(); ++i) shape_[i] = tensor.shape_ptr()[i];
  }

  // May be null for an array without elements.
  KERNIX_HD T* data() const noexcept { return data_; }

  // The number of elements; 1 for a scalar.
  KERNIX_HD int64_t size() const noexcept { return size_; }
  KERNIX_HD bool empty() const noexcept { return size_ == 0; }

  KERNIX_HD int ndim() const noexcept { return kRank == kAnyRank ? ndim_ : kRank; }

  // The extent of axis `i`. In host code, an axis that does not exist throws CheckError.
  KERNIX_HD int64_t shape(int i) const {
#if !defined(__CUDA_ARCH__)
    if (i < 0 || i >= ndim()) FailNumber<CheckError>("the array has no axis", i);
#endif
    return shape_[i];
  }

  // Element `i` in row-major order, whatever the shape. `i` must be 0 to size() - 1; it is not checked.
  KERNIX_HD T& operator[](int64_t i) const noexcept { return data_[i]; }

  // The element at an index for each axis. The indices are not checked. A wrong number of them does not compile or,
  // with kAnyRank, throws CheckError in host code.
  template <typename... Indices>
  KERNIX_HD T& operator()(Indices... indices) const {
    constexpr int kCount = static_cast<int>(sizeof...(Indices));
    static_assert(kRank == kAnyRank ? kCount <= kMaxDim : kCount == kRank, "give one index for each dimension");
#if !defined(__CUDA_ARCH__)
    if (kRank == kAnyRank && ndim_ != kCount) FailNumber<CheckError>("indices do not match the dimensions:", ndim_);
#endif
    int64_t place = 0;
    int axis = 0;
    ((place = place * shape_[axis++] + static_cast<int64_t>(indices)), ...);
    return data_[place];
  }

  // All elements, in row-major order.
  KERNIX_HD T* begin() const noexcept { return data_; }
  KERNIX_HD T* end() const noexcept { return data_ + size_; }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
  int64_t shape_[kRank == kAnyRank ? kMaxDim : kRank == 0 ? 1 : kRank] = {};
  int ndim_ = 0;
};

}  // namespace internal

// An input: its elements are read-only.
template <typename T, int kRank = kAnyRank>
class In : public internal::View<const T, kRank> {
 public:
  using internal::View<const T, kRank>::View;
};

// An output.
template <typename T, int kRank = kAnyRank>
class Out : public internal::View<T, kRank> {
 public:
  using internal::View<T, kRank>::View;
};

}  // namespace BE
