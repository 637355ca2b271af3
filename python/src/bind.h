// SPDX-License-Identifier: Apache-2.0
//
// The parts of the extension module. kernix/_core.pyi documents the bindings, for readers and type checkers.
#pragma once

#include <pybind11/pybind11.h>

namespace kernix::python {

void BindCall(pybind11::module_& module);
void BindErrors(pybind11::module_& module);
void BindClient(pybind11::module_& module);
void BindLoad(pybind11::module_& module);  // after BindClient and BindModule
void BindModule(pybind11::module_& module);

}  // namespace kernix::python
