// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernix/call_frame.h"

namespace kernix::python {

// Memory that belongs to a NumPy array.
struct PlainArray {
  void* data;
  DataType type;
  std::vector<int64_t> shape;
  size_t bytes;

  bool Overlaps(const PlainArray& other) const {
    const auto begin = reinterpret_cast<uintptr_t>(data), other_begin = reinterpret_cast<uintptr_t>(other.data);
    return begin < other_begin + other.bytes && other_begin < begin + bytes;
  }
};

// NumPy arrays that the extension reads itself: of exactly the type `numpy.ndarray`, row-major, aligned, and of an
// element type that kernix/calling/arrays.py has already seen.
class PlainArrays {
 public:
  // `types` comes from kernix/calling/arrays.py. It maps a dtype, in this machine's byte order, to an XLA_FFI_DataType,
  // and it may grow later.
  PlainArrays(pybind11::object ndarray, pybind11::object empty, pybind11::dict types)
      : ndarray_(std::move(ndarray)), empty_(std::move(empty)), types_(std::move(types)) {}

  // Returns nullopt if the array is not plain, or if it is read-only and `writable` is set.
  std::optional<PlainArray> Read(pybind11::handle array, bool writable) const;

  // Creates an array like `arguments`. Returns null if they are not plain or not alike.
  pybind11::object MakeLike(const pybind11::tuple& arguments) const;

 private:
  pybind11::object ndarray_;
  pybind11::object empty_;
  pybind11::dict types_;
};

}  // namespace kernix::python
