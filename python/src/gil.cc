// SPDX-License-Identifier: Apache-2.0
#include "python/src/gil.h"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include "client/connection/fork_gate.h"
#include "common/os/fork_safety.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

// A load that is cancelled ends within milliseconds. More is for one that hangs: the process shall end all the same.
constexpr std::chrono::seconds kPatience{5};

struct State {
  ForkSafeMutex mutex;
  CondVar changed;
  int threads ABSL_GUARDED_BY(mutex) = 0;  // in a WithoutGil
  uint64_t generation ABSL_GUARDED_BY(mutex) = 0;
  std::optional<std::thread::id> ended_by ABSL_GUARDED_BY(mutex);
};

State& TheState() {
  static auto* state = new State;
  return *state;
}

[[maybe_unused]] const State& kMadeAtLoad = TheState();

// Threads of a parent are none of a forked child.
void ForgetParents(State& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  if (state.generation == ForkGate::Generation()) return;
  state.generation = ForkGate::Generation();
  state.threads = 0;
}

uint64_t Enter() {
  State& state = TheState();
  MutexLock lock(state.mutex);
  ForgetParents(state);
  ++state.threads;
  return state.generation;
}

void Leave(uint64_t generation) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  ForgetParents(state);
  if (generation == state.generation) --state.threads;
  state.changed.NotifyAll();
}

void StopIfPythonEnds() {
  while (PythonEnds()) pause();
}

void AwaitThreads() {
  State& state = TheState();
  MutexLock lock(state.mutex);
  ForgetParents(state);
  state.ended_by = std::this_thread::get_id();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (state.threads > 0 && state.changed.WaitUntil(state.mutex, deadline)) {
  }
}

void AtExit() {
  const py::gil_scoped_release no_gil;  // they may need it to come to their end
  AwaitThreads();
}

}  // namespace

bool PythonEnds() {
  State& state = TheState();
  MutexLock lock(state.mutex);
  return state.ended_by && *state.ended_by != std::this_thread::get_id();
}

// Who sees no end here counts already, so the end waits.
WithoutGil::WithoutGil() : generation_(Enter()) {
  if (PythonEnds()) {
    Leave(generation_);
    throw std::runtime_error("kernix cannot be called any more: Python is ending");
  }
  state_ = PyEval_SaveThread();
}

// Whoever sees no end here still counts, so the end waits until the GIL is taken.
WithoutGil::~WithoutGil() {
  if (PythonEnds()) {
    Leave(generation_);
    StopIfPythonEnds();
  }
  PyEval_RestoreThread(state_);
  Leave(generation_);
}

void WaitAtExit() { py::module_::import("atexit").attr("register")(py::cpp_function(&AtExit)); }

}  // namespace kernix::python
