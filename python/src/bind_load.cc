// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/diagnostics.h"
#include "client/load/load_memo.h"
#include "client/load/load_request.h"
#include "client/load/matching_files.h"
#include "client/tools/environment.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "kernix/client.h"
#include "kernix/load.h"
#include "kernix/module.h"
#include "python/src/bind.h"
#include "python/src/gil.h"

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

// Forwards the callbacks of a load to the methods of a Python object.
//
// Create and destroy it with the GIL held, and run the load in the same thread without the GIL. A callback may wait for
// the GIL without risk of a deadlock with os.fork(), which holds the GIL while running loads pause: the code that must
// pause runs in a thread of libkernix that never calls this class.
class ObserverCallbacks {
 public:
  // `observer` is an Observer of _core.pyi and must outlive this object.
  explicit ObserverCallbacks(const py::object& observer) : observer_(observer) {}

  // The callbacks hold a pointer to this object. An exception in the observer or in a signal handler (Ctrl-C) cancels
  // the load, and so does the end of the interpreter.
  LoadCallbacks Callbacks() {
    LoadCallbacks callbacks;
    callbacks.output = TextCallback("output");
    callbacks.progress = TextCallback("progress");
    callbacks.warning = TextCallback("warning");
    callbacks.cancelled = [this] { return Poll(); };
    if (!observer_.attr("inputs").is_none()) {
      callbacks.inputs = [this](const std::vector<std::string>& paths) {
        WithPython([&] { observer_.attr("inputs")(std::vector<py::bytes>(paths.begin(), paths.end())); });
      };
    }
    return callbacks;
  }

  // Throws the exception that cancelled the load, if there was one. Needs the GIL.
  void ThrowIfCancelled() {
    if (exception_) throw *std::exchange(exception_, std::nullopt);
  }

 private:
  std::function<void(std::string_view)> TextCallback(const char* method) {
    return [this, method](std::string_view text) { WithPython([&] { observer_.attr(method)(ToPython(text)); }); };
  }

  // After the first exception, or once Python is ending, the observer receives no more calls; the load only runs to its
  // end.
  template <typename Call>
  void WithPython(const Call& call) {
    if (exception_ || PythonEnds()) return;
    const py::gil_scoped_acquire gil;
    try {
      call();
    } catch (py::error_already_set& error) {
      exception_ = std::move(error);
    }
  }

  bool Poll() {
    WithPython([this] {
      observer_.attr("poll")();
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    });
    return exception_.has_value() || PythonEnds();
  }

  const py::object& observer_;
  std::optional<py::error_already_set> exception_;
};

Loaded LoadRequest(Client& client, const Request& request, const py::object& observer) {
  ObserverCallbacks observer_callbacks(observer);
  LoadOptions options = request.options;
  options.callbacks = observer_callbacks.Callbacks();
  options.environment = ProcessVariables();
  absl::StatusOr<LoadedModule> loaded =
      CallWithoutGil([&] { return LoadAnew(client, request.language, request.name, request.sources, options); });
  observer_callbacks.ThrowIfCancelled();
  auto [module, slot] = ValueOrThrow(std::move(loaded));
  return {std::move(module), slot};
}

std::shared_ptr<Module> OpenLibraryAt(Client& client, const py::bytes& path, std::string instance, bool begin_anew) {
  LoadOptions options;
  options.instance = std::move(instance);
  options.begin_anew = begin_anew;
  options.environment = ProcessVariables();
  const std::string file = path;
  return ValueOrThrow(CallWithoutGil([&] { return LoadLibrary(client, file, options); }));
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

void SetPolicy(Request& request, const py::object& policy) {
  if (!py::isinstance<py::str>(policy)) {
    throw py::type_error(StrCat("policy must be a string, not ", std::string(py::repr(policy))));
  }
  request.options.policy = ValueOrThrow(PolicyNamed(policy.cast<std::string>(), "policy"));
}

void SetBundles(Request& request, const std::vector<py::bytes>& paths) {
  request.options.bundles = {paths.begin(), paths.end()};
}

void BindRequest(py::module_& module) {
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
  BindOption<&LoadOptions::begin_anew>(request, "begin_anew");
  BindOption<&LoadOptions::instance>(request, "instance", "a string");
  BindOption<&LoadOptions::verbose>(request, "verbose");
  BindOption<&LoadOptions::max_parallel_jobs>(request, "max_parallel_jobs");
  BindOption<&LoadOptions::batch>(request, "batch");
  BindOption<&LoadOptions::in_history>(request, "in_history");
  BindOption<&LoadOptions::frozen>(request, "frozen");
  request.def_property("policy", nullptr, &SetPolicy);
  request.def_property("bundles", nullptr, &SetBundles);
}

// None if the user has switched this warning off.
std::optional<std::string> Shown(const std::string& name, const std::string& text) {
  return ShownWarning(GetEnvOf(ProcessVariables()), name, text);
}

// Paths may have any encoding.
std::vector<py::bytes> PathsOfMatchingFiles(const py::bytes& directory, const std::vector<std::string>& patterns) {
  const std::string folder = directory;
  const std::vector<std::string> found = ValueOrThrow(CallWithoutGil([&] { return MatchingFiles(folder, patterns); }));
  return {found.begin(), found.end()};
}

// `command`: a serialised v1::FailedCommand.
py::bytes SaveCommand(const py::bytes& command, const py::bytes& folder) {
  v1::FailedCommand parsed;
  if (!parsed.ParseFromString(std::string(command))) parsed.Clear();  // then there is nothing to run again
  return ValueOrThrow(SaveFailedCommand(parsed, std::string(folder)));
}

// Whether to load again: see SeenFiles.
void BindSeenFiles(py::module_& module) {
  const auto paths_of = [](const std::vector<py::bytes>& paths) {
    return std::vector<std::string>(paths.begin(), paths.end());
  };
  py::class_<SeenFiles>(module, "SeenFiles")
      .def(py::init([] { return std::make_unique<SeenFiles>(Env::Posix()); }))
      .def(
          "changed",
          [=](SeenFiles& self, const std::vector<py::bytes>& paths) { return self.Changed(paths_of(paths)); },
          py::arg("paths"))
      .def(
          "note_load", [=](SeenFiles& self, const std::vector<py::bytes>& paths) { self.NoteLoad(paths_of(paths)); },
          py::arg("paths"));
}

}  // namespace

void BindLoad(py::module_& module) {
  BindRequest(module);
  BindSeenFiles(module);
  module.def("matching_files", &PathsOfMatchingFiles, py::arg("directory"), py::arg("patterns"));
  module.def("shown_warning", &Shown, py::arg("name"), py::arg("text"));
  module.def("save_failed_command", &SaveCommand, py::arg("command"), py::arg("folder"));
  module.def("find_loaded", &Find, py::arg("client"), py::arg("request"));
  module.def("load_library", &OpenLibraryAt, py::arg("client"), py::arg("path"), py::arg("instance"),
             py::arg("begin_anew"));
  module.def("load", &LoadRequest, py::arg("client"), py::arg("request"), py::arg("observer"));
}

}  // namespace kernix::python
