// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernix/module.h"
#include "kernix/targets.h"
#include "python/src/bind.h"
#include "python/src/errors.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

// The argument of jax.ffi.register_ffi_target(): a capsule without a name.
py::capsule ToCapsule(Handler handler) { return py::capsule(reinterpret_cast<const void*>(handler)); }

using Names = std::vector<std::pair<std::string, std::string>>;  // target, function or platform

std::vector<BindOutcome> Bind(const std::string& platform, const Module& module, const Names& names, bool replace,
                              const py::function& announce) {
  std::vector<TargetName> targets;
  for (const auto& [target, function] : names) targets.push_back({target, function});
  std::optional<py::error_already_set> refusal;
  const auto tell = [&](const std::string& target, Handler address) {
    try {
      announce(target, ToCapsule(address));
      return absl::OkStatus();
    } catch (py::error_already_set& error) {
      refusal = std::move(error);
      return absl::AbortedError("refused");
    }
  };
  const absl::StatusOr<std::vector<Binding>> bindings = BindTargets(platform, module, targets, replace, tell);
  if (refusal) throw *std::exchange(refusal, std::nullopt);
  std::vector<BindOutcome> outcomes;
  for (const Binding& binding : ValueOrThrow(bindings)) outcomes.push_back(binding.outcome);
  return outcomes;
}

void RefuseCallsOnCpu(const std::vector<std::string>& targets, const py::function& announce) {
  ThrowIfError(RefuseOnCpu(targets, [&](const std::string& target, Handler address) {
    return announce(target, ToCapsule(address)).cast<bool>() ? absl::OkStatus() : absl::AbortedError("refused");
  }));
}

Names List() {
  Names names;
  for (TargetInfo& info : ListTargets()) names.emplace_back(std::move(info.target), std::move(info.platform));
  return names;
}

// Returns 0 if no handler is bound to the target.
uintptr_t TargetAddress(std::string_view target, std::string_view platform) {
  for (const TargetInfo& info : ListTargets()) {
    if (info.target == target && info.platform == platform) return reinterpret_cast<uintptr_t>(info.address);
  }
  return 0;
}

}  // namespace

void BindTargets(py::module_& module) {
  py::enum_<BindOutcome>(module, "BindOutcome")
      .value("NEW", BindOutcome::kNew)
      .value("UNCHANGED", BindOutcome::kUnchanged)
      .value("REPLACED", BindOutcome::kReplaced);
  module.def("bind_targets", &Bind, py::arg("platform"), py::arg("module"), py::arg("names"), py::arg("replace"),
             py::arg("announce"));
  module.def("refuse_on_cpu", &RefuseCallsOnCpu, py::arg("targets"), py::arg("announce"));
  module.def("list_targets", &List);
  module.def("target_address", &TargetAddress, py::arg("target"), py::arg("platform"));
}

}  // namespace kernix::python
