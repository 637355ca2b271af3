// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/tools/gpu_architecture.h"
#include "client/tools/toolchain_finder.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "common/os/folders.h"
#include "kernix/client.h"
#include "kernix/load.h"
#include "kernix/trace.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/gil.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

std::unique_ptr<Client> MakeClient(std::string store_directory, std::vector<std::string> site_packages,
                                   const py::bytes& program) {
  ClientOptions options;
  options.store_directory = std::move(store_directory);
  options.site_packages = std::move(site_packages);
  options.program = program;
  return ValueOrThrow(Client::Create(std::move(options)));
}

// `call` may start a daemon.
template <typename Call>
auto CallDaemon(const Call& call) {
  return ValueOrThrow(CallWithoutGil(call));
}

void BindValues(py::module_& module) {
  py::class_<DaemonInfo>(module, "DaemonInfo")
      .def_readonly("address", &DaemonInfo::address)
      .def_readonly("version", &DaemonInfo::version)
      .def_readonly("build_id", &DaemonInfo::build_id)
      .def_readonly("pid", &DaemonInfo::pid)
      .def_readonly("store_directory", &DaemonInfo::store_directory)
      .def_readonly("shared", &DaemonInfo::shared)
      .def_readonly("running_jobs", &DaemonInfo::running_jobs)
      .def_readonly("queued_jobs", &DaemonInfo::queued_jobs);
  py::class_<CacheStats>(module, "CacheStats")
      .def_readonly("builds", &CacheStats::builds)
      .def_readonly("hits", &CacheStats::hits)
      .def_readonly("misses", &CacheStats::misses)
      .def_readonly("failures", &CacheStats::failures)
      .def_readonly("cancelled", &CacheStats::cancelled)
      .def_readonly("entries", &CacheStats::entries)
      .def_readonly("bytes", &CacheStats::bytes)
      .def_readonly("limit_bytes", &CacheStats::limit_bytes);
}

double Milliseconds(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1000; }

// The fields of kernix.BuildTrace from `began_unix_ms` on; for each step those of kernix.BuildStep.
py::tuple FieldsOf(const BuildTrace& trace) {
  py::list steps;
  for (const TracedStep& step : trace.steps) {
    steps.append(py::make_tuple(step.name, HowName(step.how), Milliseconds(step.begin), Milliseconds(step.waited),
                                Milliseconds(step.took), step.peak_memory_bytes));
  }
  return py::make_tuple(trace.began_unix_ms, Milliseconds(trace.total), steps, trace.left_out);
}

TracedStep::How HowNamed(const std::string& name) {
  using How = TracedStep::How;
  for (const How how : {How::kReused, How::kDaemon, How::kUpstream, How::kRemote}) {
    if (name == HowName(how)) return how;
  }
  return How::kRun;
}

std::chrono::microseconds TimeIn(const py::handle& object, const char* name) {
  return std::chrono::microseconds(std::llround(1000 * object.attr(name).cast<double>()));
}

// From a kernix.BuildTrace.
BuildTrace TraceFrom(const py::object& fields) {
  BuildTrace trace{.began_unix_ms = fields.attr("began_unix_ms").cast<int64_t>(),
                   .total = TimeIn(fields, "total_ms"),
                   .left_out = fields.attr("left_out").cast<uint32_t>()};
  for (const py::handle step : fields.attr("steps")) {
    trace.steps.push_back({step.attr("name").cast<std::string>(), HowNamed(step.attr("how").cast<std::string>()),
                           TimeIn(step, "begin_ms"), TimeIn(step, "waited_ms"), TimeIn(step, "took_ms"),
                           step.attr("peak_memory_bytes").cast<uint64_t>()});
  }
  return trace;
}

uint64_t Purge(Client& client, std::string name) {
  PurgeFilter filter;
  filter.name = std::move(name);
  return CallDaemon([&] { return client.Purge(filter); }).entries;
}

std::string DefaultStore() { return ValueOrThrow(DefaultStoreDirectory(Env::Posix(), ProcessGetEnv, getuid())); }

std::string FindNvcc(const std::vector<std::string>& site_packages) {
  const ToolchainSearch search{.language = v1::LANGUAGE_CUDA, .site_packages = site_packages};
  return ValueOrThrow(FindToolchain(Env::Posix(), ProcessGetEnv, search)).nvcc();
}

std::string GpuArchitecture() { return ValueOrThrow(DetectGpuArchitecture()); }

}  // namespace

void BindClient(py::module_& module) {
  BindValues(module);
  module.def(
      "chrome_trace",
      [](const py::object& trace, const std::string& title) { return ChromeTrace(TraceFrom(trace), title); },
      py::arg("trace"), py::arg("title"));
  module.def(
      "draw_trace", [](const py::object& trace, size_t width) { return DrawTrace(TraceFrom(trace), width); },
      py::arg("trace"), py::arg("width"));
  module.def("default_store_directory", &DefaultStore);
  py::class_<Client>(module, "Client")
      .def(py::init(&MakeClient), py::kw_only(), py::arg("store_directory") = "",
           py::arg("site_packages") = std::vector<std::string>{}, py::arg("program") = py::bytes())
      .def(
          "info", [](Client& client, bool start) { return CallDaemon([&] { return client.Info(start); }); },
          py::arg("start") = true)
      .def(
          "stats", [](Client& client, bool start) { return CallDaemon([&] { return client.Stats(start); }); },
          py::arg("start") = true)
      .def(
          "trace",
          [](Client& client, const std::string& key) {
            return FieldsOf(CallDaemon([&] { return client.Trace(key); }));
          },
          py::arg("key"))
      .def("purge", &Purge, py::arg("name") = "")
      .def("shutdown", [](Client& client) { ThrowIfError(CallWithoutGil([&] { return client.Shutdown(); })); });
  module.def("find_nvcc", &FindNvcc, py::arg("site_packages"));
  module.def("gpu_architecture", &GpuArchitecture);
}

}  // namespace kernix::python
