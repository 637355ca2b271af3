// SPDX-License-Identifier: Apache-2.0
//
// Waiting without the GIL, in a way that the end of the interpreter survives.
//
// Once the interpreter is being finalised, CPython ends a daemon thread that asks for the GIL by unwinding its stack,
// which crashes C++ code on it. So from then on kernix' threads leave Python alone, and a function of `atexit` waits
// until all of them have noticed.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

namespace kernix::python {

// True once the interpreter ends, except in the thread that ends it. Then work without the GIL shall end soon, and must
// not take the GIL any more. Needs no GIL.
bool PythonEnds();

// Frees the GIL while it lives. Where PythonEnds(), making one throws std::runtime_error, with the GIL still held, so
// that whoever waits for this thread in a function of `atexit` that comes after ours gets an end; destroying one stops
// the thread for ever: the process goes without it. Work that is done in one looks at PythonEnds() every now and then,
// unless it is short.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
  uint64_t generation_;
};

// Registers the function that waits. Needs the GIL; once, when the extension is loaded.
void WaitAtExit();

}  // namespace kernix::python
