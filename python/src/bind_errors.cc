// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "python/src/bind.h"

namespace kernix::python {
namespace {

namespace py = pybind11;

// Wraps a function of Python, its attribute `__wrapped__`, which the garbage collector sees there. This is not a
// function of Python, so it is no frame of a traceback.
struct ShortErrors {};

py::object Call(const py::object& self, const py::args& arguments, const py::kwargs& named) {
  try {
    return self.attr("__wrapped__")(*arguments, **named);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception) && !error.matches(PyExc_KeyboardInterrupt)) throw;
    if (error.trace()) PyException_SetTraceback(error.value().ptr(), error.trace().ptr());
    Raise(py::module_::import("kernix._errors").attr("shortened")(error.value()));
  }
}

py::object Bind(const py::object& self, const py::object& instance, const py::object& /*type*/) {
  if (instance.is_none()) return self;
  return py::reinterpret_steal<py::object>(PyMethod_New(self.ptr(), instance.ptr()));
}

}  // namespace

// Of the name that help() shows.
void BindErrors(py::module_& module) {
  py::class_<ShortErrors>(module, "function", py::dynamic_attr())
      .def(py::init<>())
      .def("__call__", &Call)
      .def("__get__", &Bind, py::arg("instance"), py::arg("type") = py::none())
      .def("__repr__", [](const py::object& self) { return py::repr(self.attr("__wrapped__")); })
      .def("__reduce__", [](const py::object& self) { return self.attr("__qualname__"); });  // as a function: its name
}

}  // namespace kernix::python
