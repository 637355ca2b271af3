// SPDX-License-Identifier: Apache-2.0
#include "python/src/load_job.h"

#include <chrono>
#include <thread>
#include <utility>

#include "python/src/errors.h"
#include "python/src/text.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

// How long Ctrl-C may go unseen.
constexpr std::chrono::milliseconds kSignalPeriod{50};

}  // namespace

std::shared_ptr<Module> LoadJob::Run(const Work& work, const py::object& observer) {
  LoadJob job(observer);
  std::thread thread([&job, &work] { job.Finish(work(job.Callbacks())); });
  job.Watch();
  {
    const py::gil_scoped_release no_gil;  // it may still be on its way out
    thread.join();
  }
  if (job.exception_) throw std::move(*job.exception_);
  return ValueOrThrow(job.TakeResult());
}

LoadCallbacks LoadJob::Callbacks() {
  LoadCallbacks callbacks;
  callbacks.output = PostText("output");
  callbacks.progress = PostText("progress");
  callbacks.warning = PostText("warning");
  callbacks.inputs = [this](const std::vector<std::string>& folders, const std::vector<std::string>& headers) {
    Post([=](const py::object& observer) { observer.attr("inputs")(PathsToPython(folders), PathsToPython(headers)); });
  };
  callbacks.cancelled = [this] { return cancelled_.load(std::memory_order_relaxed); };
  return callbacks;
}

std::function<void(std::string_view)> LoadJob::PostText(const char* method) {
  return [this, method](std::string_view text) {
    Post([method, text = std::string(text)](const py::object& observer) { observer.attr(method)(ToPython(text)); });
  };
}

void LoadJob::Post(Event event) {
  const MutexLock lock(mutex_);
  events_.push_back(std::move(event));
  changed_.NotifyOne();
}

void LoadJob::Finish(Result result) {
  const MutexLock lock(mutex_);
  result_ = std::move(result);
  changed_.NotifyOne();
}

LoadJob::Result LoadJob::TakeResult() {
  const MutexLock lock(mutex_);
  return *std::move(result_);
}

bool LoadJob::Wait(std::vector<Event>& events) {
  const auto deadline = std::chrono::steady_clock::now() + kSignalPeriod;
  const py::gil_scoped_release no_gil;
  const MutexLock lock(mutex_);
  bool in_time = true;
  while (in_time && !result_ && events_.empty()) in_time = changed_.WaitUntil(mutex_, deadline);
  events = std::exchange(events_, {});
  return result_.has_value();
}

void LoadJob::Watch() {
  std::vector<Event> events;
  bool done = false;
  while (!done) {
    done = Wait(events);
    if (exception_) continue;  // already cancelled: only the end is waited for
    try {
      Dispatch(events);
    } catch (py::error_already_set& error) {
      exception_ = std::move(error);
      cancelled_ = true;
    }
  }
}

void LoadJob::Dispatch(const std::vector<Event>& events) {
  for (const Event& event : events) event(observer_);
  observer_.attr("poll")();
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace kernix::python
