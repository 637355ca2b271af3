// SPDX-License-Identifier: Apache-2.0
//
// The callbacks of a load, as methods of a Python object.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <optional>
#include <string_view>

#include "kernix/load.h"

namespace kernix::python {

// Make it and destroy it with the GIL held; load in the same thread without. That a callback waits for the GIL is no
// danger to os.fork(), which holds it while running loads pause: what has to pause for it runs in a thread of libkernix
// that never calls us.
class LoadObserver {
 public:
  // `observer` is an Observer of _core.pyi, and must outlive this.
  explicit LoadObserver(const pybind11::object& observer) : observer_(observer) {}

  // They hold a pointer to this. An exception of the observer or of a signal handler (Ctrl-C) cancels the load, and
  // so does the end of the interpreter.
  LoadCallbacks Callbacks();

  // Throws what cancelled the load, if something did. Needs the GIL.
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
