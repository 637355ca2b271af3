// SPDX-License-Identifier: Apache-2.0
#include "python/src/array_memory.h"

#include <pybind11/numpy.h>

#include <string>
#include <string_view>

namespace kernix::python {

namespace py = pybind11;

std::optional<PlainArray> PlainArrays::Read(py::handle object, bool writable) const {
  if (py::type::handle_of(object).ptr() != ndarray_.ptr()) return std::nullopt;
  const auto array = py::reinterpret_borrow<py::array>(object);
  constexpr int kUsable = int{py::array::c_style} | int{py::detail::npy_api::NPY_ARRAY_ALIGNED_};
  if ((array.flags() & kUsable) != kUsable || (writable && !array.writeable())) return std::nullopt;
  PyObject* type = PyDict_GetItemWithError(types_.ptr(), array.dtype().ptr());
  if (type == nullptr) {
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    return std::nullopt;
  }
  return PlainArray{.data = const_cast<void*>(array.data()),
                    .type = static_cast<DataType>(py::handle(type).cast<int>()),
                    .shape = {array.shape(), array.shape() + array.ndim()},
                    .bytes = static_cast<size_t>(array.nbytes())};
}

py::object PlainArrays::MakeLike(const py::tuple& arguments) const {
  std::optional<PlainArray> first;
  for (const py::handle argument : arguments) {
    std::optional<PlainArray> array = Read(argument, false);
    if (!array || (first && (array->type != first->type || array->shape != first->shape))) return {};
    if (!first) first = std::move(array);
  }
  if (!first) return {};
  const py::handle like = arguments[0];
  return empty_(like.attr("shape"), like.attr("dtype"));
}

namespace {

template <typename Managed>
void Delete(void* managed) {
  auto* typed = static_cast<Managed*>(managed);
  if (typed->deleter != nullptr) typed->deleter(typed);
}

}  // namespace

template <typename Managed>
void DlpackTensor::TakeOver(const py::capsule& capsule, const char* used_name) {
  auto* managed = capsule.get_pointer<Managed>();
  if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
  owner_ = std::shared_ptr<void>(managed, &Delete<Managed>);
  tensor_ = &managed->tensor;
}

DlpackTensor::DlpackTensor(const py::capsule& capsule) {
  const char* name_or_null = capsule.name();
  const std::string_view name = name_or_null == nullptr ? "" : name_or_null;
  if (name == "dltensor") {
    TakeOver<dlpack::Managed>(capsule, "used_dltensor");
    return;
  }
  if (name != "dltensor_versioned") {
    throw py::value_error("has a __dlpack__() that returned a capsule named '" + std::string(name) +
                          "', which holds no tensor or has already been used");
  }
  const auto* managed = capsule.get_pointer<dlpack::ManagedVersioned>();
  if (managed->version.major != dlpack::kMajorVersion) {
    throw py::value_error("has a __dlpack__() that returned version " + std::to_string(managed->version.major) +
                          " of DLPack; kernix knows version 1");
  }
  flags_ = managed->flags;
  TakeOver<dlpack::ManagedVersioned>(capsule, "used_dltensor_versioned");
}

uintptr_t DlpackTensor::data() const { return reinterpret_cast<uintptr_t>(tensor_->data) + tensor_->byte_offset; }

bool DlpackTensor::is_contiguous() const {
  if (tensor_->strides == nullptr) return true;
  int64_t expected = 1;
  bool gaps = false;
  for (int i = tensor_->rank - 1; i >= 0; --i) {
    if (tensor_->shape[i] == 0) return true;
    gaps = gaps || (tensor_->shape[i] != 1 && tensor_->strides[i] != expected);
    expected *= tensor_->shape[i];
  }
  return !gaps;
}

}  // namespace kernix::python
