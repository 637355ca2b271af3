// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "kernix/module.h"
#include "kernix/targets.h"
#include "python/src/bind.h"
#include "python/src/errors.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

// What jax.ffi.register_ffi_target() takes: a capsule without a name.
py::capsule ToCapsule(Handler handler) { return py::capsule(reinterpret_cast<const void*>(handler)); }

std::pair<BindOutcome, py::capsule> Bind(const std::string& target, const std::string& platform, const Module& module,
                                         const std::string& function, bool replace) {
  const Binding binding = ValueOrThrow(BindTarget(target, platform, module, function, replace));
  return {binding.outcome, ToCapsule(binding.address)};
}

std::vector<std::pair<std::string, std::string>> List() {
  std::vector<std::pair<std::string, std::string>> names;
  for (TargetInfo& info : ListTargets()) names.emplace_back(std::move(info.target), std::move(info.platform));
  return names;
}

}  // namespace

void BindTargets(py::module_& module) {
  py::enum_<BindOutcome>(module, "BindOutcome")
      .value("NEW", BindOutcome::kNew)
      .value("UNCHANGED", BindOutcome::kUnchanged)
      .value("REPLACED", BindOutcome::kReplaced);
  module.def("bind_target", &Bind, py::arg("target"), py::arg("platform"), py::arg("module"), py::arg("function"),
             py::arg("replace"));
  module.def("list_targets", &List);
}

}  // namespace kernix::python
