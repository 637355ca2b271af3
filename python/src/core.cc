// SPDX-License-Identifier: Apache-2.0
//
// kernix._core: libkernix for Python. It is a thin layer; the package's Python files implement the public interface.
#include <pybind11/pybind11.h>

#include "client/tools/environment.h"
#include "common/base/version.h"
#include "python/src/bind.h"
#include "python/src/gil.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "libkernix, the client of kernixd. An implementation detail of the package kernix.";
  module.def("version", &kernix::Version);
  module.def("environment_fingerprint", [] { return pybind11::bytes(kernix::VariablesOfLoads()); });
  kernix::python::WaitAtExit();
  kernix::python::BindErrors(module);
  kernix::python::BindClient(module);
  kernix::python::BindModule(module);
  kernix::python::BindLoad(module);
  kernix::python::BindCall(module);
}
