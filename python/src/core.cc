// SPDX-License-Identifier: Apache-2.0
//
// kernix._core: libkernix for Python. Thin on purpose; what users see is made in the package's Python files.
#include <grpc/support/log.h>
#include <pybind11/pybind11.h>

#include <cstdlib>

#include "client/tools/environment.h"
#include "common/base/version.h"
#include "python/src/bind.h"
#include "python/src/gil.h"

namespace {

// gRPC writes to the program's stderr what no user of kernix can act on, such as that its threads take their time to
// end on a busy machine. What fails is an exception anyway.
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
  kernix::python::BindLoad(module);
  kernix::python::BindTargets(module);
  kernix::python::BindCall(module);
  kernix::python::BindToolchain(module);
}
