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

#include "absl/status/statusor.h"
#include "client/tools/environment.h"
#include "kernix/client.h"
#include "kernix/inspection.h"
#include "kernix/load.h"
#include "kernix/module.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/load_observer.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

std::shared_ptr<Module> LoadSources(Client& client, Language language, const std::string& name,
                                    const std::vector<Source>& sources, const LoadOptions& options,
                                    const py::object& observer) {
  LoadObserver load_observer(observer);
  LoadOptions observed = options;
  observed.callbacks = load_observer.Callbacks();
  observed.environment = ProcessVariables();  // which Python changes under the GIL
  absl::StatusOr<std::shared_ptr<Module>> loaded = [&] {
    const WithoutGil no_gil;
    return Load(client, language, name, sources, observed);
  }();
  load_observer.ThrowIfCancelled();
  return ValueOrThrow(std::move(loaded));
}

// Without a label: libkernix chooses it as for a C++ program, so that both come to the same key.
Source MakeSource(std::string text, std::string path) {
  return {.text = std::move(text), .label = "", .path = std::move(path)};
}

uintptr_t Address(const Module& module, std::string_view function) {
  return reinterpret_cast<uintptr_t>(ValueOrThrow(module.handler(function)));
}

void BindRequest(py::module_& module) {
  py::enum_<Language>(module, "Language").value("CPP", Language::kCpp).value("CUDA", Language::kCuda);
  py::class_<Source>(module, "Source").def(py::init(&MakeSource), py::arg("text"), py::arg("path") = "");
  py::class_<Function>(module, "Function")
      .def(py::init<std::string, std::vector<std::string>>(), py::arg("name"), py::arg("tokens"));
  py::class_<LoadOptions>(module, "LoadOptions")
      .def(py::init<>())
      .def_readwrite("functions", &LoadOptions::functions)
      .def_readwrite("separate", &LoadOptions::separate)
      .def_readwrite("debug", &LoadOptions::debug)
      .def_readwrite("keep", &LoadOptions::keep)
      .def_readwrite("compile_flags", &LoadOptions::compile_flags)
      .def_readwrite("link_flags", &LoadOptions::link_flags)
      .def_readwrite("include_paths", &LoadOptions::include_paths)
      .def_readwrite("last_include_paths", &LoadOptions::last_include_paths)
      .def_readwrite("compute_capability", &LoadOptions::compute_capability)
      .def_readwrite("optimization_level", &LoadOptions::optimization_level)
      .def_readwrite("use_fast_math", &LoadOptions::use_fast_math)
      .def_readwrite("allow_cuda_graph", &LoadOptions::allow_cuda_graph)
      .def_readwrite("force_rebuild", &LoadOptions::force_rebuild)
      .def_readwrite("verbose", &LoadOptions::verbose)
      .def_readwrite("max_parallel_jobs", &LoadOptions::max_parallel_jobs);
}

// What the compiler made of text is in no certain encoding.
py::bytes Bytes(absl::StatusOr<std::string> text) { return py::bytes(ValueOrThrow(std::move(text))); }

std::vector<std::string> SourceLabels(const Module& module) {
  std::vector<std::string> labels;
  for (const GeneratedUnit& unit : module.generated_units()) {
    labels.insert(labels.end(), unit.sources.begin(), unit.sources.end());
  }
  return labels;
}

// None: no unit was made from a source of that label.
std::optional<py::bytes> SourceOf(const Module& module, const std::string& label) {
  const absl::StatusOr<std::string> text = GeneratedSource(module, label);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  return Bytes(text);
}

// A path of any encoding.
void WriteInto(const Module& module, const py::bytes& directory) {
  const std::string path = directory;
  const absl::Status status = [&] {
    const WithoutGil no_gil;
    return WriteBuildDirectory(module, path);
  }();
  if (!status.ok()) Throw(status);
}

void BindResources(py::module_& module) {
  py::class_<KernelResources>(module, "KernelResources")
      .def_readonly("name", &KernelResources::name)
      .def_readonly("symbol", &KernelResources::symbol)
      .def_readonly("architecture", &KernelResources::architecture)
      .def_readonly("registers", &KernelResources::registers)
      .def_readonly("shared_memory", &KernelResources::shared_memory)
      .def_readonly("stack_frame", &KernelResources::stack_frame)
      .def_readonly("spill_stores", &KernelResources::spill_stores)
      .def_readonly("spill_loads", &KernelResources::spill_loads)
      .def_readonly("constant_memory", &KernelResources::constant_memory)
      .def_readonly("barriers", &KernelResources::barriers);
}

void BindModule(py::module_& module) {
  py::class_<FunctionInfo>(module, "FunctionInfo")
      .def_readonly("name", &FunctionInfo::name)
      .def_readonly("tokens", &FunctionInfo::tokens)
      .def_readonly("traits", &FunctionInfo::traits);
  py::class_<Module, std::shared_ptr<Module>>(module, "Module")
      .def_property_readonly("name", &Module::name)
      .def_property_readonly("path", &Module::path)
      .def_property_readonly("functions", &Module::functions)
      .def_property_readonly("key", &Module::key)
      .def_property_readonly("artifact_digest", &Module::artifact_digest)
      .def_property_readonly("cache_hit", &Module::cache_hit)
      .def_property_readonly("build_ms", &Module::build_ms)
      .def_property_readonly("source_labels", &SourceLabels)
      .def("source", &SourceOf, py::arg("label"))
      .def(
          "ptx", [](const Module& self, const std::string& architecture) { return Bytes(Ptx(self, architecture)); },
          py::arg("architecture"))
      .def(
          "sass", [](const Module& self, const std::string& architecture) { return Bytes(Sass(self, architecture)); },
          py::arg("architecture"))
      .def("resources", [](const Module& self) { return ValueOrThrow(Resources(self)); })
      .def("write_build_directory", &WriteInto, py::arg("directory"))
      .def("address", &Address, py::arg("function"));
}

}  // namespace

void BindLoad(py::module_& module) {
  BindRequest(module);
  BindResources(module);
  BindModule(module);
  module.def("load", &LoadSources, py::arg("client"), py::arg("language"), py::arg("name"), py::arg("sources"),
             py::arg("options"), py::arg("observer"));
}

}  // namespace kernix::python
