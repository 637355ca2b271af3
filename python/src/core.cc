// SPDX-License-Identifier: Apache-2.0
//
// kernix._core: libkernix for Python. It is a thin layer; the package's Python files implement the public interface.
#include <grpc/support/log.h>
#include <pybind11/pybind11.h>

#include <cstdlib>

#include "client/tools/environment.h"
#include "common/base/version.h"
#include "python/src/bind.h"
#include "python/src/gil.h"

namespace {

// gRPC writes messages to stderr that users of kernix cannot act on, for example that its threads are slow to end on a
// busy machine. Failures become exceptions in any case.
void SilenceGrpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "libkernix, the client of kernixd. An implementation detail of the package kernix.";
  module.def("version", &kernix::Version);
  module.def("build_id", &kernix::BuildId);
  module.def("environment_fingerprint", [] { return pybind11::bytes(kernix::VariablesOfLoads()); });
  SilenceGrpc();
  kernix::python::WaitAtExit();
  kernix::python::BindClient(module);
  kernix::python::BindModule(module);
  kernix::python::BindLoad(module);
  kernix::python::BindTargets(module);
  kernix::python::BindCall(module);
  kernix::python::BindToolchain(module);
}
