// SPDX-License-Identifier: Apache-2.0
//
// A function whose code can be swapped while it is being called.
#pragma once

#include <atomic>
#include <cstddef>

#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

// A few bytes of machine code at a fixed address that jump through an atomic pointer. Lives for ever, since whoever was
// given the address may call it at any time. A forked child has its own copy of all of them. Cheap to copy.
class Trampoline {
 public:
  // What to call: never changes.
  Handler address() const { return address_; }

  // Where calls go now. Calls that began before a SetHandler() end in the old code. Both are thread-safe.
  Handler handler() const { return slot_->load(std::memory_order_acquire); }
  void SetHandler(Handler next) { slot_->store(next, std::memory_order_release); }

 private:
  friend class TrampolinePool;
  Trampoline(Handler code, std::atomic<Handler>* slot) : address_(code), slot_(slot) {}

  Handler address_;
  std::atomic<Handler>* slot_;
};

// Makes trampolines, any number of them. Their memory stays when the pool goes. Not thread-safe.
class TrampolinePool {
 public:
  // A new trampoline that leads to `handler`. A REGISTRATION error where the system forbids executable memory.
  absl::StatusOr<Trampoline> Create(Handler handler);

 private:
  absl::Status MapBlock();

  unsigned char* code_ = nullptr;  // of the block that is being filled: one page of stubs, then one of slots
  size_t page_size_ = 0;
  size_t used_ = 0;
};

}  // namespace kernix
