// SPDX-License-Identifier: Apache-2.0
#include "python/src/errors.h"

#include <pybind11/pybind11.h>

#include "common/base/error.h"

namespace kernix::python {

namespace py = pybind11;

void Throw(const absl::Status& status) {
  const v1::ErrorDetail detail = GetErrorDetail(status);
  const py::object make = py::module_::import("kernix._errors").attr("from_detail");
  const py::object exception =
      make(v1::ErrorDetail::Kind_Name(detail.kind()), ToPython(detail.message()), ToPython(detail.compiler_output()),
           ToPython(detail.command()), py::bytes(detail.failed_command().SerializeAsString()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

}  // namespace kernix::python
