// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/paths.h"
#include "common/os/env.h"
#include "common/os/places.h"
#include "kernix/client.h"
#include "kernix/trace.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/gil.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

std::unique_ptr<Client> MakeClient(std::string store_directory, std::vector<std::string> site_packages) {
  ClientOptions options;
  options.store_directory = std::move(store_directory);
  options.site_packages = std::move(site_packages);
  return ValueOrThrow(Client::Create(std::move(options)));
}

// `call` may start a daemon.
template <typename Call>
auto CallDaemon(Call call) {
  auto result = [&] {
    const WithoutGil no_gil;
    return call();
  }();
  return ValueOrThrow(std::move(result));
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
      .def_readonly("joined", &CacheStats::joined)
      .def_readonly("failures", &CacheStats::failures)
      .def_readonly("evictions", &CacheStats::evictions)
      .def_readonly("cancelled", &CacheStats::cancelled)
      .def_readonly("upstream_hits", &CacheStats::upstream_hits)
      .def_readonly("entries", &CacheStats::entries)
      .def_readonly("bytes", &CacheStats::bytes)
      .def_readonly("limit_bytes", &CacheStats::limit_bytes);
}

// Name, how, times, peak memory.
using StepFields = std::tuple<std::string, std::string, int64_t, int64_t, int64_t, uint64_t>;

std::vector<StepFields> StepsOf(const BuildTrace& trace) {
  std::vector<StepFields> steps;
  for (const TracedStep& step : trace.steps) {
    steps.emplace_back(step.name, HowName(step.how), step.begin.count(), step.waited.count(), step.took.count(),
                       step.peak_memory_bytes);
  }
  return steps;
}

TracedStep::How HowNamed(const std::string& name) {
  using How = TracedStep::How;
  for (const How how : {How::kReused, How::kJoined, How::kDaemon, How::kUpstream, How::kRemote}) {
    if (name == HowName(how)) return how;
  }
  return How::kRun;
}

BuildTrace MakeTrace(int64_t began_unix_ms, int64_t total_us, const std::vector<StepFields>& steps, uint32_t left_out) {
  using std::chrono::microseconds;
  BuildTrace trace{.began_unix_ms = began_unix_ms, .total = microseconds(total_us)};
  for (const auto& [name, how, begin, waited, took, peak_memory] : steps) {
    trace.steps.push_back(
        {name, HowNamed(how), microseconds(begin), microseconds(waited), microseconds(took), peak_memory});
  }
  trace.left_out = left_out;
  return trace;
}

void BindTrace(py::module_& module) {
  py::class_<BuildTrace>(module, "BuildTrace")
      .def(py::init(&MakeTrace), py::arg("began_unix_ms"), py::arg("total_us"), py::arg("steps"), py::arg("left_out"))
      .def_readonly("began_unix_ms", &BuildTrace::began_unix_ms)
      .def_property_readonly("total_us", [](const BuildTrace& trace) { return trace.total.count(); })
      .def_property_readonly("steps", &StepsOf)
      .def_readonly("left_out", &BuildTrace::left_out)
      .def("chrome", &ChromeTrace, py::arg("title"))
      .def("draw", &DrawTrace, py::arg("width"));
}

uint64_t Purge(Client& client, std::string name) {
  PurgeFilter filter;
  filter.name = std::move(name);
  return CallDaemon([&] { return client.Purge(filter); }).entries;
}

void Shutdown(Client& client) {
  const absl::Status status = [&] {
    const WithoutGil no_gil;
    return client.Shutdown();
  }();
  ThrowIfError(status);
}

std::string DefaultStore() { return ValueOrThrow(DefaultStoreDirectory(Env::Posix(), ProcessGetEnv, getuid())); }

}  // namespace

void BindClient(py::module_& module) {
  BindValues(module);
  BindTrace(module);
  module.def("default_store_directory", &DefaultStore);
  py::class_<Client>(module, "Client")
      .def(py::init(&MakeClient), py::kw_only(), py::arg("store_directory") = "",
           py::arg("site_packages") = std::vector<std::string>{})
      .def(
          "info", [](Client& client, bool start) { return CallDaemon([&] { return client.Info(start); }); },
          py::arg("start") = true)
      .def(
          "stats", [](Client& client, bool start) { return CallDaemon([&] { return client.Stats(start); }); },
          py::arg("start") = true)
      .def(
          "trace", [](Client& client, const std::string& key) { return CallDaemon([&] { return client.Trace(key); }); },
          py::arg("key"))
      .def("purge", &Purge, py::arg("name") = "")
      .def("shutdown", &Shutdown);
}

}  // namespace kernix::python
