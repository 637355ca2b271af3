// SPDX-License-Identifier: Apache-2.0
#include "python/src/observer_callbacks.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "python/src/errors.h"
#include "python/src/gil.h"

namespace kernix::python {

namespace py = pybind11;

LoadCallbacks ObserverCallbacks::Callbacks() {
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

void ObserverCallbacks::ThrowIfCancelled() {
  if (exception_) throw *std::exchange(exception_, std::nullopt);
}

std::function<void(std::string_view)> ObserverCallbacks::TextCallback(const char* method) {
  return [this, method](std::string_view text) { WithPython([&] { observer_.attr(method)(ToPython(text)); }); };
}

// After the first exception, or once Python is ending, the observer receives no more calls; the load only runs to its
// end.
template <typename Call>
void ObserverCallbacks::WithPython(Call call) {
  if (exception_ || PythonEnds()) return;
  const py::gil_scoped_acquire gil;
  try {
    call();
  } catch (py::error_already_set& error) {
    exception_ = std::move(error);
  }
}

bool ObserverCallbacks::Poll() {
  WithPython([this] {
    observer_.attr("poll")();
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  });
  return exception_.has_value() || PythonEnds();
}

}  // namespace kernix::python
