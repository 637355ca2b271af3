// SPDX-License-Identifier: Apache-2.0
//
// Handlers for names: the query of a handler's traits, the handler of a name without live code, and trampolines, whose
// code can be replaced during calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

// The traits that `handler` declares, asked before XLA sees it: if a handler that answers wrongly is registered before
// JAX's backend starts, JAX stops working in the whole process. Returns a LOAD error if it does not answer XLA's
// metadata query with FFI API 0.1.
absl::StatusOr<uint32_t> ProbeHandler(Handler handler);

// The handler of a name that a runtime knows but under which no code is live. It declares `traits` when a runtime asks
// for its metadata, and answers every call with an error that says that no kernel is loaded under the name.
Handler ReservedHandler(uint32_t traits);

// The handler of a CUDA function's name on the CPU: each call is an error that says where the function runs.
XLA_FFI_Error* CudaFunctionOnCpu(XLA_FFI_CallFrame* frame, const char* target);

// A function whose code can be replaced during calls.
//
// A few bytes of machine code at a fixed address that jump through an atomic pointer, with a name as second argument.
// It exists until the process ends, because any holder of the address may call it at any time. A forked child has its
// own copies. Cheap to copy.
class Trampoline {
 public:
  // The address to call. It never changes.
  Handler address() const { return address_; }

  // The current destination of calls. Calls that began before SetHandler() finish in the old code. Both functions are
  // thread-safe.
  Handler handler() const { return reinterpret_cast<Handler>(slot_->handler.load(std::memory_order_acquire)); }
  void SetHandler(Handler next) { slot_->handler.store(reinterpret_cast<void*>(next), std::memory_order_release); }
  // The same for code that takes a name, which must stay valid until the process ends. For a moment, calls of the
  // earlier code may get the new name.
  void SetHandler(NamedHandler next, const char* name) {
    slot_->name.store(name, std::memory_order_release);
    slot_->handler.store(reinterpret_cast<void*>(next), std::memory_order_release);
  }

  // The data that the machine code reads.
  struct Slot {
    std::atomic<const char*> name = nullptr;
    std::atomic<void*> handler = nullptr;  // a Handler or a NamedHandler
  };

 private:
  friend class TrampolinePool;
  Trampoline(Handler code, Slot* slot) : address_(code), slot_(slot) {}

  Handler address_;
  Slot* slot_;
};

// Creates any number of trampolines. Their memory remains when the pool is destroyed. Not thread-safe.
class TrampolinePool {
 public:
  // Creates a trampoline that leads to `handler`. Returns a REGISTRATION error if the system forbids executable memory.
  absl::StatusOr<Trampoline> Create(Handler handler);

 private:
  absl::Status MapBlock();

  unsigned char* code_ = nullptr;  // of the current block: one page of stubs, then one of slots
  size_t page_size_ = 0;
  size_t used_ = 0;
};

}  // namespace kernix
