// SPDX-License-Identifier: Apache-2.0
//
// Waiting without the GIL in a way that survives the end of the interpreter.
//
// Once the interpreter is being finalised, CPython ends a daemon thread that requests the GIL by unwinding its stack,
// which crashes if C++ code is on it. So from then on, kernix' threads do not touch Python, and an `atexit` function
// waits until all of them have noticed.
#pragma once

#include <pybind11/pybind11.h>
#include <sys/types.h>

namespace kernix::python {

// True once the interpreter is ending, except in the thread that ends it. Work without the GIL must then end soon and
// must not take the GIL again. Needs no GIL.
bool PythonEnds();

// Releases the GIL during its lifetime. If PythonEnds() is true, the constructor throws std::runtime_error with the GIL
// still held, so that a later `atexit` function that waits for this thread can finish; the destructor stops the thread
// for ever, and the process exits without it. Work inside a WithoutGil must check PythonEnds() regularly unless it is
// short.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
  pid_t process_;  // that entered
};

// What `work` returns, which it finds out without the GIL.
template <typename Work>
auto CallWithoutGil(const Work& work) {
  const WithoutGil no_gil;
  return work();
}

// Registers the function that waits. Call it once, when the extension is loaded. Needs the GIL.
void WaitAtExit();

}  // namespace kernix::python
