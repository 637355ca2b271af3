// SPDX-License-Identifier: Apache-2.0
//
// BE::In and BE::Out: arrays of one element type, as a kernel takes them. Each call is checked, by JAX or without:
//
//   // @BE add
//   void add(BE::In<float> x, BE::In<float, 2> w, BE::Out<float> y) {
//     for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i] + w(i, 0);
//   }
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/tensor.h"

namespace BE {

inline constexpr int kAnyRank = -1;

namespace internal {

#if defined(KERNIX_CHECK_INDICES)

// An index, with the line of the code that uses it.
struct Place {
  int64_t index;
  const char* file;
  int line;

  template <typename T>
  KERNIX_HD Place(T value, const char* in_file = __builtin_FILE(), int in_line = __builtin_LINE())
      : index(static_cast<int64_t>(value)), file(in_file), line(in_line) {}
  KERNIX_HD operator int64_t() const { return index; }
};

// The handler's facts about an array: whose parameter it is. Copies, because a device cannot read the host's texts.
struct ArrayName {
  char function[40] = "a kernel";
  char parameter[40] = "an array";

  KERNIX_HD static void Copy(const char* from, char (&to)[40]) {
    int i = 0;
    for (; i < 39 && from[i] != '\0'; ++i) to[i] = from[i];
    if (i > 0) to[i] = '\0';
  }
};

// A file's name without the folder in which kernix shows sources to the compiler.
KERNIX_HD inline const char* UsersName(const char* file) {
  const char* at = file;
  for (const char* folder = "kernix-source/"; *folder != '\0'; ++folder, ++at) {
    if (*at != *folder) return file;
  }
  return at;
}

// `axis` is -1 for an index in row-major order.
[[noreturn]] KERNIX_HD KERNIX_COLD inline void FailIndex(const ArrayName& name, const Place& place, int axis,
                                                         const int64_t* shape, int ndim) {
  Text text;
  text.Add("index ").AddSigned(place.index).Add(" is out of range");
  if (axis >= 0) text.Add(" in axis ").AddSigned(axis);
  text.Add(" of ").Add(name.parameter).Add(", whose shape is (");
  for (int i = 0; i < ndim; ++i) text.Add(i == 0 ? "" : ", ").AddSigned(shape[i]);
  text.Add(ndim == 1 ? ",)" : ")");
  KERNIX_FAIL(CheckError, "check failed at %s:%d: %s: %s", UsersName(place.file), place.line, name.function,
              text.c_str());
}

#else
using Place = int64_t;
#endif

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

  // Element `i` in row-major order, whatever the shape. `i` must be 0 to size() - 1; only debug=True checks that.
  KERNIX_HD T& operator[](Place i) const KERNIX_NOEXCEPT_INDEX {
#if defined(KERNIX_CHECK_INDICES)
    if (i.index < 0 || i.index >= size_) FailIndex(name_, i, -1, shape_, ndim());
#endif
    return data_[i];
  }

  // All elements, in row-major order.
  KERNIX_HD T* begin() const noexcept { return data_; }
  KERNIX_HD T* end() const noexcept { return data_ + size_; }

 protected:
  T* data_ = nullptr;
  int64_t size_ = 0;
  int64_t shape_[kRank == kAnyRank ? kMaxDim : kRank == 0 ? 1 : kRank] = {};
  int ndim_ = 0;

#if defined(KERNIX_CHECK_INDICES)
 public:
  void SetName(const char* function, const char* parameter) {
    ArrayName::Copy(function, name_.function);
    ArrayName::Copy(parameter, name_.parameter);
  }

 protected:
  // Returns `i`, an index of axis `axis`.
  KERNIX_HD int64_t Checked(const Place& i, int axis) const {
    if (i.index < 0 || i.index >= shape_[axis]) FailIndex(name_, i, axis, shape_, ndim());
    return i.index;
  }

  ArrayName name_;
#else
  KERNIX_HD static int64_t Checked(int64_t i, int) noexcept { return i; }
#endif
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
using Index = Place;

// A view whose elements have an index for each axis. Only debug=True checks the indices. A wrong number of them is a
// call that fits no function, so that compilers name the user's line and the right number.
template <typename T, int kRank, typename TheAxes>  // of AxesOf<kRank>; no default: clangd 14 would not find members
class Indexed;

template <typename T, int kRank, int... kAxes>
class Indexed<T, kRank, Axes<kAxes...>> : public View<T, kRank> {
 public:
  using View<T, kRank>::View;

  KERNIX_HD T& operator()(Index<kAxes>... indices) const KERNIX_NOEXCEPT_INDEX {
    int64_t place = 0;
    ((place = place * this->shape_[kAxes] + this->Checked(indices, kAxes)), ...);
    return this->data_[place];
  }
};

// With kAnyRank, a wrong number of indices throws CheckError in host code.
template <typename T>
class Indexed<T, kAnyRank, void> : public View<T, kAnyRank> {
 public:
  using View<T, kAnyRank>::View;

  KERNIX_HD T& operator()() const {
    CheckCount(0);
    return this->data_[0];
  }

#if defined(KERNIX_CHECK_INDICES)
  template <typename... Indices>
  KERNIX_HD T& operator()(Place first, Indices... others) const {
    return Element(first, others...);
  }
#else
  template <typename First, typename... Indices>
  KERNIX_HD T& operator()(First first, Indices... others) const {
    return Element(static_cast<int64_t>(first), others...);
  }
#endif

 private:
  template <typename... Indices>
  KERNIX_HD T& Element(Place first, Indices... others) const {
    static_assert(sizeof...(Indices) < kMaxDim, "an array has up to 8 dimensions");
    CheckCount(1 + static_cast<int>(sizeof...(Indices)));
    int64_t place = this->Checked(first, 0);
    [[maybe_unused]] int axis = 0;
    ((++axis, place = place * this->shape_[axis] + this->Checked(At(first, others), axis)), ...);
    return this->data_[place];
  }

  // The other indices of a call stand where the first does.
  template <typename I>
  KERNIX_HD static Place At([[maybe_unused]] const Place& first, I index) {
#if defined(KERNIX_CHECK_INDICES)
    return Place(index, first.file, first.line);
#else
    return static_cast<int64_t>(index);
#endif
  }

  KERNIX_HD void CheckCount([[maybe_unused]] int count) const {
#if !defined(__CUDA_ARCH__)
    if (this->ndim_ != count) FailNumber<CheckError>("indices do not match the dimensions:", this->ndim_);
#endif
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
