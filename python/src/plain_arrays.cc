// SPDX-License-Identifier: Apache-2.0
#include "python/src/plain_arrays.h"

#include <pybind11/numpy.h>

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

}  // namespace kernix::python
