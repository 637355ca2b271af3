// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "client/tools/gpu_architecture.h"
#include "client/tools/toolchain_finder.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "kernix/load.h"
#include "python/src/bind.h"
#include "python/src/errors.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

v1::ToolchainPaths Find(Language language, const std::vector<std::string>& site_packages) {
  const ToolchainSearch search{.language = language, .site_packages = site_packages};
  return ValueOrThrow(FindToolchain(Env::Posix(), ProcessGetEnv, search));
}

std::string FindHostCompiler() { return Find(Language::kCpp, {}).host_compiler(); }

std::string FindNvcc(const std::vector<std::string>& site_packages) {
  return Find(Language::kCuda, site_packages).nvcc();
}

std::string GpuArchitecture() { return ValueOrThrow(DetectGpuArchitecture()); }

}  // namespace

void BindToolchain(py::module_& module) {
  module.def("find_host_compiler", &FindHostCompiler);
  module.def("find_nvcc", &FindNvcc, py::arg("site_packages"));
  module.def("gpu_architecture", &GpuArchitecture);
}

}  // namespace kernix::python
