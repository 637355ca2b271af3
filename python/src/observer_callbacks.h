// SPDX-License-Identifier: Apache-2.0
//
// Forwards the callbacks of a load to the methods of a Python object.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <optional>
#include <string_view>

#include "kernix/load.h"

namespace kernix::python {

// Create and destroy it with the GIL held, and run the load in the same thread without the GIL. A callback may wait for
// the GIL without risk of a deadlock with os.fork(), which holds the GIL while running loads pause: the code that must
// pause runs in a thread of libkernix that never calls this class.
class ObserverCallbacks {
 public:
  // `observer` is an Observer of _core.pyi and must outlive this object.
  explicit ObserverCallbacks(const pybind11::object& observer) : observer_(observer) {}

  // The callbacks hold a pointer to this object. An exception in the observer or in a signal handler (Ctrl-C) cancels
  // the load, and so does the end of the interpreter.
  LoadCallbacks Callbacks();

  // Throws the exception that cancelled the load, if there was one. Needs the GIL.
  void ThrowIfCancelled();

 private:
  std::function<void(std::string_view)> TextCallback(const char* method);
  template <typename Call>
  void WithPython(Call call);
  bool Poll();

  const pybind11::object& observer_;
  std::optional<pybind11::error_already_set> exception_;
};

}  // namespace kernix::python
