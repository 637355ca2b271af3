// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/load_memo.h"
#include "client/load/matching_files.h"
#include "client/tools/environment.h"
#include "common/base/strings.h"
#include "kernix/client.h"
#include "kernix/inspection.h"
#include "kernix/load.h"
#include "kernix/module.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/observer_callbacks.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

// The arguments of a load. libkernix chooses the labels, so that Python and C++ produce the same key.
struct Request {
  Language language;
  std::string name;
  std::vector<Source> sources;
  LoadOptions options;
};

using Texts = std::vector<std::string>;
using TextAndPath = std::pair<std::string, std::string>;
using NameAndTokens = std::pair<std::string, Texts>;

Request MakeRequest(Language language, std::string name, std::vector<TextAndPath> sources,
                    std::optional<std::vector<NameAndTokens>> functions, Texts compile_flags, Texts link_flags,
                    Texts include_paths, Texts last_include_paths) {
  Request request{.language = language, .name = std::move(name), .sources = {}, .options = {}};
  for (auto& [text, path] : sources) {
    request.sources.push_back({.text = std::move(text), .label = "", .path = std::move(path)});
  }
  if (functions) {
    request.options.functions.emplace();
    for (auto& [function, tokens] : *functions) request.options.functions->push_back({function, std::move(tokens)});
  }
  request.options.compile_flags = std::move(compile_flags);
  request.options.link_flags = std::move(link_flags);
  request.options.include_paths = std::move(include_paths);
  request.options.last_include_paths = std::move(last_include_paths);
  return request;
}

// A module and its slot.
using Loaded = std::pair<std::shared_ptr<Module>, uint64_t>;

// Runs with the GIL, because Python changes the environment under the GIL.
Loaded Find(const Client& client, const Request& request) {
  LoadedModule found = FindLoaded(client, request.language, request.name, request.sources, request.options);
  return {std::move(found.module), found.slot};
}

Loaded LoadRequest(Client& client, const Request& request, const py::object& observer) {
  ObserverCallbacks observer_callbacks(observer);
  LoadOptions options = request.options;
  options.callbacks = observer_callbacks.Callbacks();
  options.environment = ProcessVariables();
  absl::StatusOr<LoadedModule> loaded = [&] {
    const WithoutGil no_gil;
    return LoadAnew(client, request.language, request.name, request.sources, options);
  }();
  observer_callbacks.ThrowIfCancelled();
  auto [module, slot] = ValueOrThrow(std::move(loaded));
  return {std::move(module), slot};
}

uintptr_t Address(const Module& module, std::string_view function) {
  return reinterpret_cast<uintptr_t>(ValueOrThrow(module.handler(function)));
}

template <typename Value>
constexpr const char* kKindOf = "an integer";
template <>
constexpr const char* kKindOf<bool> = "a bool";

// Sets options from Python. A value of another type is an error that names the option.
template <auto kOption>
void BindOption(py::class_<Request>& request, const char* name,
                const char* kind = kKindOf<std::remove_reference_t<decltype(std::declval<LoadOptions>().*kOption)>>) {
  using Value = std::remove_reference_t<decltype(std::declval<LoadOptions>().*kOption)>;
  request.def_property(
      name, [](const Request& self) { return self.options.*kOption; },
      [name, kind](Request& self, const py::object& value) {
        try {
          self.options.*kOption = value.cast<Value>();
        } catch (const py::cast_error&) {
          throw py::type_error(StrCat(name, " must be ", kind, ", not ", std::string(py::repr(value))));
        }
      });
}

void BindRequest(py::module_& module) {
  py::enum_<Language>(module, "Language").value("CPP", Language::kCpp).value("CUDA", Language::kCuda);
  py::class_<Request> request(module, "Request");
  request
      .def(py::init(&MakeRequest), py::arg("language"), py::arg("name"), py::arg("sources"), py::arg("functions"),
           py::arg("compile_flags"), py::arg("link_flags"), py::arg("include_paths"), py::arg("last_include_paths"))
      .def_readonly("name", &Request::name);
  BindOption<&LoadOptions::separate>(request, "separate");
  BindOption<&LoadOptions::debug>(request, "debug");
  BindOption<&LoadOptions::keep>(request, "keep");
  BindOption<&LoadOptions::compute_capability>(request, "compute_capability", R"(a string such as "sm_90" or "9.0")");
  BindOption<&LoadOptions::optimization_level>(request, "optimization_level");
  BindOption<&LoadOptions::use_fast_math>(request, "use_fast_math");
  BindOption<&LoadOptions::allow_cuda_graph>(request, "allow_cuda_graph");
  BindOption<&LoadOptions::force_rebuild>(request, "force_rebuild");
  BindOption<&LoadOptions::verbose>(request, "verbose");
  BindOption<&LoadOptions::max_parallel_jobs>(request, "max_parallel_jobs");
}

// Text from the compiler has no certain encoding.
py::bytes Bytes(absl::StatusOr<std::string> text) { return py::bytes(ValueOrThrow(std::move(text))); }

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

// Paths may have any encoding.
std::vector<py::bytes> PathsOfMatchingFiles(const py::bytes& directory, const std::vector<std::string>& patterns) {
  const std::string folder = directory;
  absl::StatusOr<std::vector<std::string>> found = [&] {
    const WithoutGil no_gil;
    return MatchingFiles(folder, patterns);
  }();
  std::vector<py::bytes> paths;
  for (const std::string& path : ValueOrThrow(std::move(found))) paths.emplace_back(path);
  return paths;
}

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
      .def_readonly("traits", &FunctionInfo::traits);
}

void BindModule(py::module_& module) {
  py::class_<Module, std::shared_ptr<Module>>(module, "Module")
      .def_property_readonly("name", &Module::name)
      .def_property_readonly("language", &Module::language)
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
  BindFunctionInfo(module);
  BindModule(module);
  module.def("matching_files", &PathsOfMatchingFiles, py::arg("directory"), py::arg("patterns"));
  module.def("find_loaded", &Find, py::arg("client"), py::arg("request"));
  module.def("load", &LoadRequest, py::arg("client"), py::arg("request"), py::arg("observer"));
}

}  // namespace kernix::python
