// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "python/src/dlpack.h"

namespace kernix::python {

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
