// SPDX-License-Identifier: Apache-2.0
#include "client/connection/fork_gate.h"

#include <grpc/grpc.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "common/os/fork_safety.h"

namespace kernix {
namespace {

// How long a section may take to end by itself. A warm load needs two milliseconds, so a program that forks all the
// time interrupts only loads that wait for a compiler. These find the result ready when they ask again.
constexpr std::chrono::milliseconds kGrace{20};

// How long a fork waits for the end of gRPC after the last section. Longer only if the application uses the same gRPC.
constexpr std::chrono::seconds kGrpcPatience{1};

// How long the end of the process waits for sections and for gRPC.
constexpr std::chrono::seconds kExitPatience{2};

std::atomic<uint64_t> generation{0};

using Clock = std::chrono::steady_clock;

// The last channel's end only begins gRPC's own, which goes on in a thread of gRPC. Returns false if gRPC has not ended
// by then.
bool AwaitEndOfGrpc(Clock::time_point deadline) {
  constexpr std::chrono::milliseconds kPause(1);
  while (grpc_is_initialized() != 0) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

struct ForkGate::State {
  Mutex mutex;
  CondVar changed;
  int forks ABSL_GUARDED_BY(mutex) = 0;  // in progress
  bool ending ABSL_GUARDED_BY(mutex) = false;
  bool may_have_used_grpc ABSL_GUARDED_BY(mutex) = false;  // since the last fork that waited for its end
  std::vector<Section*> sections ABSL_GUARDED_BY(mutex);
};

namespace {

// Never destroyed: threads may use it while the process exits.
std::atomic<void*> current_state{nullptr};

}  // namespace

bool ForkGate::Install() {
  if (current_state.load() != nullptr) return true;
  current_state = new State;
  std::atexit(&AwaitExit);
  InstallForkSafety();  // its locks are taken after the gate is closed, because running sections may still need them
  return pthread_atfork(&Prepare, &ReleaseParent, &ReleaseChild) == 0;
}

const bool ForkGate::installed_ = Install();

ForkGate::State& ForkGate::GetState() {
  if (current_state.load() == nullptr) Install();  // for static constructors of other code
  return *static_cast<State*>(current_state.load());
}

uint64_t ForkGate::Generation() { return generation.load(); }

bool ForkGate::Ending() {
  State& state = GetState();
  MutexLock lock(state.mutex);
  return state.ending;
}

void ForkGate::WaitUntilEmpty(State& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  const Clock::time_point grace_end = Clock::now() + kGrace;
  while (!state.sections.empty()) {
    if (!state.changed.WaitUntil(state.mutex, grace_end)) break;
  }
  for (Section* section : state.sections) section->InterruptLocked();
  while (!state.sections.empty()) state.changed.Wait(state.mutex);
}

void ForkGate::Prepare() {
  State& state = GetState();
  MutexLock lock(state.mutex);
  ++state.forks;
  WaitUntilEmpty(state);
  if (std::exchange(state.may_have_used_grpc, false)) AwaitEndOfGrpc(Clock::now() + kGrpcPatience);
}

void ForkGate::AwaitExit() {
  State& state = GetState();
  MutexLock lock(state.mutex);
  state.ending = true;
  const Clock::time_point start = Clock::now();
  while (!state.sections.empty() && state.changed.WaitUntil(state.mutex, start + kGrace)) {
  }
  for (Section* section : state.sections) section->InterruptLocked();
  while (!state.sections.empty() && state.changed.WaitUntil(state.mutex, start + kExitPatience)) {
  }
  if (state.may_have_used_grpc) AwaitEndOfGrpc(start + kExitPatience);
}

void ForkGate::ReleaseParent() {
  State& state = GetState();
  MutexLock lock(state.mutex);
  --state.forks;
  state.changed.NotifyAll();
}

void ForkGate::ReleaseChild() {
  // Threads that do not exist here may have locked the old state or waited on it. It stays as it is.
  current_state = new State;
  ++generation;
}

ForkGate::Section::Section() {
  State& state = GetState();
  MutexLock lock(state.mutex);
  while (state.forks > 0) state.changed.Wait(state.mutex);
  interrupted_ = state.ending;
  state.may_have_used_grpc = true;
  state.sections.push_back(this);
}

ForkGate::Section::~Section() {
  State& state = GetState();
  MutexLock lock(state.mutex);
  state.sections.erase(std::remove(state.sections.begin(), state.sections.end(), this), state.sections.end());
  state.changed.NotifyAll();
}

bool ForkGate::Section::interrupted() const {
  State& state = GetState();
  MutexLock lock(state.mutex);
  return interrupted_;
}

void ForkGate::Section::Interrupt() {
  State& state = GetState();
  MutexLock lock(state.mutex);
  InterruptLocked();
}

void ForkGate::Section::InterruptLocked() {
  if (!std::exchange(interrupted_, true) && interrupt_) interrupt_();
}

void ForkGate::Section::OnInterrupt(std::function<void()> interrupt) {
  State& state = GetState();
  MutexLock lock(state.mutex);
  interrupt_ = std::move(interrupt);
  if (interrupted_ && interrupt_) interrupt_();
}

}  // namespace kernix
