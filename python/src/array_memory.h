// SPDX-License-Identifier: Apache-2.0
//
// The memory of arrays that Python passes to a call: NumPy's, read directly, and that of all others, through DLPack.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernix/call_frame.h"

// The structures of DLPack, for a consumer: version 1 (`DLManagedTensorVersioned`, in a capsule named
// "dltensor_versioned") and the version before it (`DLManagedTensor`, "dltensor"). Source: dmlc/dlpack,
// include/dlpack/dlpack.h.
namespace kernix::python::dlpack {

struct Device {
  int32_t type;
  int32_t id;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);  // may be null
};

struct Version {
  uint32_t major;
  uint32_t minor;
};

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint64_t kReadOnly = 1;  // bits of ManagedVersioned::flags
inline constexpr uint64_t kIsCopied = 2;

struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);  // may be null
  uint64_t flags;
  Tensor tensor;
};

}  // namespace kernix::python::dlpack

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

// An array of another library, received through DLPack. Keeps the memory alive. Destroy it with the GIL held.
class DlpackTensor {
 public:
  // Takes the tensor out of `capsule`, the result of `__dlpack__()`. Throws ValueError if it is not such a capsule, has
  // already been used, or has a version of DLPack that kernix does not support.
  explicit DlpackTensor(const pybind11::capsule& capsule);

  uintptr_t data() const;
  std::pair<int, int> device() const { return {tensor_->device.type, tensor_->device.id}; }
  // Code, bits, lanes.
  std::vector<int> dtype() const { return {tensor_->dtype.code, tensor_->dtype.bits, tensor_->dtype.lanes}; }
  std::vector<int64_t> shape() const { return {tensor_->shape, tensor_->shape + tensor_->rank}; }
  bool is_read_only() const { return (flags_ & dlpack::kReadOnly) != 0; }
  // Whether this is a copy instead of the array's own memory.
  bool is_copied() const { return (flags_ & dlpack::kIsCopied) != 0; }
  // Row-major without gaps.
  bool is_contiguous() const;

 private:
  template <typename Managed>
  void TakeOver(const pybind11::capsule& capsule, const char* used_name);

  std::shared_ptr<void> owner_;
  const dlpack::Tensor* tensor_ = nullptr;
  uint64_t flags_ = 0;
};

}  // namespace kernix::python
