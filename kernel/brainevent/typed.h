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

  // All elements, in row-major order.
  KERNIX_HD T* begin() const noexcept { return data_; }
  KERNIX_HD T* end() const noexcept { return data_ + size_; }

 protected:
  T* data_ = nullptr;
  int64_t size_ = 0;
  int64_t shape_[kRank == kAnyRank ? kMaxDim : kRank == 0 ? 1 : kRank] = {};
  int ndim_ = 0;
};

// Axes<0, 1> of an array of two dimensions; void with kAnyRank. Without <utility>, which takes a while to compile.
template <int...>
struct Axes;
template <int kLeft, int... kAxes>
struct AxesOf : AxesOf<kLeft - 1, kLeft - 1, kAxes...> {};
template <int... kAxes>
struct AxesOf<0, kAxes...> {
  using Type = Axes<kAxes...>;
};
template <>
struct AxesOf<kAnyRank> {
  using Type = void;
};

template <int>
using Index = int64_t;

// A view whose elements have an index for each axis. The indices are not checked. A wrong number of them is a call that
// fits no function, so that compilers name the user's line and the right number.
template <typename T, int kRank, typename TheAxes>  // of AxesOf<kRank>; no default: clangd 14 would not find members
class Indexed;

template <typename T, int kRank, int... kAxes>
class Indexed<T, kRank, Axes<kAxes...>> : public View<T, kRank> {
 public:
  using View<T, kRank>::View;

  KERNIX_HD T& operator()(Index<kAxes>... indices) const noexcept {
    int64_t place = 0;
    ((place = place * this->shape_[kAxes] + indices), ...);
    return this->data_[place];
  }
};

// With kAnyRank, a wrong number of indices throws CheckError in host code.
template <typename T>
class Indexed<T, kAnyRank, void> : public View<T, kAnyRank> {
 public:
  using View<T, kAnyRank>::View;

  template <typename... Indices>
  KERNIX_HD T& operator()(Indices... indices) const {
    static_assert(sizeof...(Indices) <= kMaxDim, "an array has up to 8 dimensions");
#if !defined(__CUDA_ARCH__)
    if (this->ndim_ != static_cast<int>(sizeof...(Indices))) {
      FailNumber<CheckError>("indices do not match the dimensions:", this->ndim_);
    }
#endif
    int64_t place = 0;
    int axis = 0;
    ((place = place * this->shape_[axis++] + static_cast<int64_t>(indices)), ...);
    return this->data_[place];
  }
};

}  // namespace internal

// An input: its elements are read-only.
template <typename T, int kRank = kAnyRank>
class In : public internal::Indexed<const T, kRank, typename internal::AxesOf<kRank>::Type> {
 public:
  using internal::Indexed<const T, kRank, typename internal::AxesOf<kRank>::Type>::Indexed;
};

// An output.
template <typename T, int kRank = kAnyRank>
class Out : public internal::Indexed<T, kRank, typename internal::AxesOf<kRank>::Type> {
 public:
  using internal::Indexed<T, kRank, typename internal::AxesOf<kRank>::Type>::Indexed;
};

}  // namespace BE
