// SPDX-License-Identifier: Apache-2.0
//
// The parts of the extension module. kernix/_core.pyi documents the bindings, for readers and type checkers.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "common/base/error.h"

namespace kernix::python {

void BindCall(pybind11::module_& module);
void BindErrors(pybind11::module_& module);
void BindClient(pybind11::module_& module);
void BindLoad(pybind11::module_& module);  // after BindClient and BindModule
void BindModule(pybind11::module_& module);

// --- absl::Status as the exceptions of kernix._errors

// Converts text from a compiler or a file name to a str. Bytes that are not UTF-8 become U+FFFD instead of an
// exception.
inline pybind11::str ToPython(std::string_view text) {
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(decoded);
}

// Throws an exception that Python has made. Needs the GIL.
[[noreturn]] inline void Raise(const pybind11::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw pybind11::error_already_set();
}

// Throws the Python exception for the kind of `status`, which must not be OK. Needs the GIL.
[[noreturn]] inline void Throw(const absl::Status& status) {
  const v1::ErrorDetail detail = GetErrorDetail(status);
  Raise(pybind11::module_::import("kernix._errors")
            .attr("from_detail")(v1::ErrorDetail::Kind_Name(detail.kind()), ToPython(detail.message()),
                                 ToPython(detail.compiler_output()), ToPython(detail.command()),
                                 pybind11::bytes(detail.failed_command().SerializeAsString()),
                                 absl::BytesToHexString(detail.key())));
}

inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) Throw(status);
}

template <typename T>
T ValueOrThrow(absl::StatusOr<T> result) {
  if (!result.ok()) Throw(result.status());
  return *std::move(result);
}

}  // namespace kernix::python
