// SPDX-License-Identifier: Apache-2.0
//
// One load, as a Python thread waits for it.
//
// The load runs in a C++ thread that never touches the GIL. The Python thread that asked for it sleeps without the GIL,
// and wakes to hand events to Python and to look for signals. So a load never waits for Python: os.fork() in another
// thread, which holds the GIL and makes running loads pause, cannot deadlock with it.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "daemon/base/mutex.h"
#include "kernix/load.h"
#include "kernix/module.h"

namespace kernix::python {

class LoadJob {
 public:
  using Result = absl::StatusOr<std::shared_ptr<Module>>;
  // Blocks until the load is done. Gets the callbacks that connect it with this job.
  using Work = std::function<Result(const LoadCallbacks&)>;

  // Runs `work` to its end. Call with the GIL held. Calls the methods `output(str)`, `progress(str)`, `warning(str)`
  // and `poll()` of `observer` in this thread. An exception of theirs, or of a signal handler (Ctrl-C), cancels the
  // load and is thrown once it has ended.
  static std::shared_ptr<Module> Run(const Work& work, const pybind11::object& observer);

 private:
  // To be handed to the observer, with the GIL held. Holds no Python object.
  using Event = std::function<void(const pybind11::object& observer)>;

  explicit LoadJob(const pybind11::object& observer) : observer_(observer) {}

  LoadCallbacks Callbacks();
  std::function<void(std::string_view)> PostText(const char* method);
  void Post(Event event);
  void Finish(Result result);
  Result TakeResult();

  // Returns true when the load is done. Moves what happened into `events`.
  bool Wait(std::vector<Event>& events);
  void Watch();
  void Dispatch(const std::vector<Event>& events);

  const pybind11::object& observer_;
  std::atomic<bool> cancelled_{false};
  std::optional<pybind11::error_already_set> exception_;  // of the observer or of a signal handler

  Mutex mutex_;
  CondVar changed_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::python
