// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/connection/daemon_client.h"
#include "client/load/trace.h"
#include "client/tools/gpu_architecture.h"
#include "client/tools/toolchain_finder.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "common/os/folders.h"
#include "kernix/client.h"
#include "kernix/load.h"
#include "python/src/bind.h"
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
  using Stats = v1::GetCacheStatsResponse;
  py::class_<Stats>(module, "CacheStats")
      .def_property_readonly("builds", &Stats::builds)
      .def_property_readonly("hits", &Stats::hits)
      .def_property_readonly("misses", &Stats::misses)
      .def_property_readonly("failures", &Stats::failures)
      .def_property_readonly("cancelled", &Stats::cancelled)
      .def_property_readonly("entries", &Stats::entries)
      .def_property_readonly("bytes", &Stats::bytes)
      .def_property_readonly("limit_bytes", &Stats::limit_bytes);
}

// Every Client is one.
DaemonClient& DaemonOf(Client& client) { return static_cast<DaemonClient&>(client); }

double Milliseconds(uint64_t us) { return static_cast<double>(us) / 1000; }

// The fields of kernix.BuildTrace from `began_unix_ms` on, for each step those of kernix.BuildStep; then the message,
// from which the trace is drawn.
py::tuple FieldsOf(const v1::BuildTrace& trace) {
  py::list steps;
  for (const v1::TracedStep& step : trace.step()) {
    steps.append(py::make_tuple(step.name(), HowName(step.how()), Milliseconds(step.begin_us()),
                                Milliseconds(step.waited_us()), Milliseconds(step.took_us()),
                                step.peak_memory_bytes()));
  }
  return py::make_tuple(trace.began_unix_ms(), Milliseconds(trace.total_us()), steps, trace.left_out(),
                        py::bytes(trace.SerializeAsString()));
}

v1::BuildTrace TraceFrom(const std::string& message) {
  v1::BuildTrace trace;
  trace.ParseFromString(message);  // its own bytes
  return trace;
}

uint64_t Purge(Client& client, const std::string& name) {
  v1::PurgeCacheRequest request;
  name.empty() ? request.set_all(true) : request.set_name(name);
  return CallDaemon([&] { return DaemonOf(client).Ask<v1::PurgeCacheResponse>("PurgeCache", request, /*start=*/true); })
      .removed_entries();
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
      [](const py::bytes& message, const std::string& title) { return ChromeTrace(TraceFrom(message), title); },
      py::arg("message"), py::arg("title"));
  module.def(
      "draw_trace", [](const py::bytes& message, size_t width) { return DrawTrace(TraceFrom(message), width); },
      py::arg("message"), py::arg("width"));
  module.def("default_store_directory", &DefaultStore);
  module.def("cache_home", [] { return py::bytes(CacheHome(ProcessGetEnv, getuid()).value_or("")); });
  py::class_<Client>(module, "Client")
      .def(py::init(&MakeClient), py::kw_only(), py::arg("store_directory") = "",
           py::arg("site_packages") = std::vector<std::string>{}, py::arg("program") = py::bytes())
      .def(
          "info", [](Client& client, bool start) { return CallDaemon([&] { return client.Info(start); }); },
          py::arg("start") = true)
      .def(
          "stats", [](Client& client, bool start) { return CallDaemon([&] { return DaemonOf(client).Stats(start); }); },
          py::arg("start") = true)
      .def(
          "trace",
          [](Client& client, const std::string& key) {
            return FieldsOf(CallDaemon([&] { return DaemonOf(client).Trace(key); }));
          },
          py::arg("key"))
      .def("purge", &Purge, py::arg("name") = "")
      .def("shutdown", [](Client& client) { ThrowIfError(CallWithoutGil([&] { return client.Shutdown(); })); });
  module.def("find_nvcc", &FindNvcc, py::arg("site_packages"));
  module.def("gpu_architecture", &GpuArchitecture);
}

}  // namespace kernix::python
