// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernix/inspection.h"
#include "kernix/module.h"
#include "kernix/targets.h"
#include "python/src/bind.h"
#include "python/src/gil.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

uintptr_t Address(const Module& module, std::string_view function) {
  return reinterpret_cast<uintptr_t>(ValueOrThrow(module.handler(function)));
}

// Text from the compiler has no certain encoding.
py::bytes Bytes(absl::StatusOr<std::string> text) { return py::bytes(ValueOrThrow(std::move(text))); }

std::vector<std::string> FunctionNames(const Module& module) {
  std::vector<std::string> names;
  for (const FunctionInfo& function : module.functions()) names.push_back(function.name);
  return names;
}

std::vector<std::string> SourceLabels(const Module& module) {
  std::vector<std::string> labels;
  for (const GeneratedUnit& unit : ValueOrThrow(module.texts()).units) {
    labels.insert(labels.end(), unit.sources.begin(), unit.sources.end());
  }
  return labels;
}

// None if no unit was made from a source with that label.
std::optional<py::bytes> SourceOf(const Module& module, const std::string& label) {
  const absl::StatusOr<std::string> text = GeneratedSource(module, label);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  return Bytes(text);
}

void WriteInto(const Module& module, const py::bytes& directory) {
  const std::string path = directory;
  ThrowIfError(CallWithoutGil([&] { return WriteBuildDirectory(module, path); }));
}

std::optional<double> OccupancyOf(std::string architecture, uint64_t registers, uint64_t shared_memory,
                                  uint64_t threads, uint64_t dynamic_shared_memory) {
  KernelResources kernel;
  kernel.architecture = std::move(architecture);
  kernel.registers = registers;
  kernel.shared_memory = shared_memory;
  return Occupancy(kernel, threads, dynamic_shared_memory);
}

// For each kernel, the fields of kernix.KernelResources.
std::vector<py::tuple> ResourcesOf(const Module& module) {
  std::vector<py::tuple> kernels;
  for (const KernelResources& kernel : ValueOrThrow(Resources(module))) {
    kernels.push_back(py::make_tuple(kernel.name, kernel.symbol, kernel.architecture, kernel.registers,
                                     kernel.shared_memory, kernel.stack_frame, kernel.spill_stores, kernel.spill_loads,
                                     kernel.constant_memory, kernel.barriers));
  }
  return kernels;
}

void BindFunctionInfo(py::module_& module) {
  py::class_<Parameter> parameter(module, "Parameter");
  py::enum_<Parameter::Role>(parameter, "Role")
      .value("ARGUMENT", Parameter::Role::kArgument)
      .value("RESULT", Parameter::Role::kResult)
      .value("ATTRIBUTE", Parameter::Role::kAttribute)
      .value("ARGUMENT_TOKEN", Parameter::Role::kArgumentToken)
      .value("RESULT_TOKEN", Parameter::Role::kResultToken)
      .value("PROVIDED", Parameter::Role::kProvided);
  parameter.def_readonly("role", &Parameter::role)
      .def_readonly("name", &Parameter::name)
      .def_readonly("type", &Parameter::type)
      .def_readonly("rank", &Parameter::rank)
      .def_readonly("optional", &Parameter::optional)
      .def_readonly("variadic", &Parameter::variadic);
  py::class_<FunctionInfo>(module, "FunctionInfo")
      .def_readonly("name", &FunctionInfo::name)
      .def_readonly("tokens", &FunctionInfo::tokens)
      .def_readonly("parameters", &FunctionInfo::parameters)
      .def_readonly("is_global", &FunctionInfo::is_global)
      .def_readonly("traits", &FunctionInfo::traits);
}

void BindModuleClass(py::module_& module) {
  py::class_<Module, std::shared_ptr<Module>>(module, "Module")
      .def_property_readonly("name", &Module::name)
      .def_property_readonly("language", &Module::language)
      .def_property_readonly("path", &Module::path)
      .def_property_readonly("functions", &Module::functions)
      .def_property_readonly("function_names", &FunctionNames)
      .def_property_readonly("key", &Module::key)
      .def_property_readonly("artifact_digest", &Module::artifact_digest)
      .def_property_readonly("origin", [](const Module& self) { return OriginName(self.origin()); })
      .def_property_readonly("cache_hit", &Module::cache_hit)
      .def_property_readonly("build_ms", &Module::build_ms)
      .def_property_readonly("miss_reason", &Module::miss_reason)
      .def_property_readonly("source_labels", &SourceLabels)
      .def("source", &SourceOf, py::arg("label"))
      .def(
          "ptx", [](const Module& self, const std::string& architecture) { return Bytes(Ptx(self, architecture)); },
          py::arg("architecture"))
      .def(
          "sass", [](const Module& self, const std::string& architecture) { return Bytes(Sass(self, architecture)); },
          py::arg("architecture"))
      .def("resources", &ResourcesOf)
      .def("write_build_directory", &WriteInto, py::arg("directory"))
      .def("address", &Address, py::arg("function"));
}

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

}  // namespace

void BindModule(py::module_& module) {
  py::enum_<Language>(module, "Language").value("CPP", Language::kCpp).value("CUDA", Language::kCuda);
  BindFunctionInfo(module);
  module.def("occupancy", &OccupancyOf, py::arg("architecture"), py::arg("registers"), py::arg("shared_memory"),
             py::arg("threads"), py::arg("dynamic_shared_memory"));
  BindModuleClass(module);
  BindTargets(module);
}

}  // namespace kernix::python
