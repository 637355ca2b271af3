// SPDX-License-Identifier: Apache-2.0
#include "python/src/gil.h"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include "common/os/fork_safety.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

// A cancelled load ends within milliseconds. This limit is for a load that hangs: the process must end anyway.
constexpr std::chrono::seconds kPatience{5};

struct State {
  ForkSafeMutex mutex;
  CondVar changed;
  int threads ABSL_GUARDED_BY(mutex) = 0;  // threads that are inside a WithoutGil
  pid_t process ABSL_GUARDED_BY(mutex) = getpid();
  std::optional<std::thread::id> ended_by ABSL_GUARDED_BY(mutex);
};

// A forked child does not have its parent's threads.
void ForgetParents(State& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  if (state.process == getpid()) return;
  state.process = getpid();
  state.threads = 0;
}

pid_t Enter() {
  auto& state = PerProcess<State>::Get();
  MutexLock lock(state.mutex);
  ForgetParents(state);
  ++state.threads;
  return state.process;
}

void Leave(pid_t process) {
  auto& state = PerProcess<State>::Get();
  MutexLock lock(state.mutex);
  ForgetParents(state);
  if (process == state.process) --state.threads;
  state.changed.NotifyAll();
}

void StopIfPythonEnds() {
  while (PythonEnds()) pause();
}

void AwaitThreads() {
  auto& state = PerProcess<State>::Get();
  MutexLock lock(state.mutex);
  ForgetParents(state);
  state.ended_by = std::this_thread::get_id();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (state.threads > 0 && state.changed.WaitUntil(state.mutex, deadline)) {
  }
}

void AtExit() {
  const py::gil_scoped_release no_gil;  // the threads may need the GIL to finish
  AwaitThreads();
}

}  // namespace

bool PythonEnds() {
  auto& state = PerProcess<State>::Get();
  MutexLock lock(state.mutex);
  return state.ended_by && *state.ended_by != std::this_thread::get_id();
}

// A thread that does not see the end here has already been counted, so the end waits for it.
WithoutGil::WithoutGil() : process_(Enter()) {
  if (PythonEnds()) {
    Leave(process_);
    throw std::runtime_error("kernix can no longer be called: Python is exiting");
  }
  state_ = PyEval_SaveThread();
}

// A thread that does not see the end here still counts, so the end waits until the thread has taken the GIL.
WithoutGil::~WithoutGil() {
  if (PythonEnds()) {
    Leave(process_);
    StopIfPythonEnds();
  }
  PyEval_RestoreThread(state_);
  Leave(process_);
}

void WaitAtExit() { py::module_::import("atexit").attr("register")(py::cpp_function(&AtExit)); }

}  // namespace kernix::python
