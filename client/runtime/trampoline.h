// SPDX-License-Identifier: Apache-2.0
//
// A function whose code can be replaced while it is being called.
#pragma once

#include <atomic>
#include <cstddef>

#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

// A few bytes of machine code at a fixed address that jump through an atomic pointer, with a name as second argument.
// It exists for ever, because any holder of the address may call it at any time. A forked child has its own copies.
// Cheap to copy.
class Trampoline {
 public:
  // The address to call. It never changes.
  Handler address() const { return address_; }

  // The current destination of calls. Calls that began before SetHandler() finish in the old code. Both functions are
  // thread-safe.
  Handler handler() const { return reinterpret_cast<Handler>(slot_->handler.load(std::memory_order_acquire)); }
  void SetHandler(Handler next) { slot_->handler.store(reinterpret_cast<void*>(next), std::memory_order_release); }
  // The same for code that takes a name, which must stay valid for ever. For a moment, calls of the earlier code may
  // get the new name.
  void SetHandler(NamedHandler next, const char* name) {
    slot_->name.store(name, std::memory_order_release);
    slot_->handler.store(reinterpret_cast<void*>(next), std::memory_order_release);
  }

  // What the machine code reads.
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
