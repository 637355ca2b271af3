// SPDX-License-Identifier: Apache-2.0
//
// Keeps fork() and gRPC apart.
//
// If a gRPC 1.51 channel is alive during a fork(), the child and the parent's next call hang. So all code that uses a
// channel, or holds something that a child must not share (a start lock, a half-read socket), runs inside a Section.
// fork() waits in a pthread_atfork handler until no section is left and gRPC, which ends in a thread of its own, has
// ended, and delays new sections until it has finished.
#pragma once

#include <cstdint>
#include <functional>

#include "common/base/mutex.h"

namespace kernix {

class ForkGate {
 public:
  // A piece of work during which no fork() can happen. fork() waits for a short section. It interrupts a long one,
  // which must then end soon, without any gRPC object left. The caller may start again from the beginning, in a new
  // section.
  //
  // Code inside a section must not wait for the application (its callbacks, Python's interpreter lock), because the
  // thread that forks may hold it. Sections of one thread do not nest.
  class Section {
   public:
    // Waits while a fork is in progress. A section that begins after the process has started to exit is interrupted
    // from the start, and the code inside must not use gRPC; see Ending().
    Section();
    ~Section();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

    // True if this section must end.
    bool interrupted() const;

    // Interrupts the section for another reason than a fork. Any thread may call it during the section's lifetime.
    void Interrupt();

    // Calls `interrupt` once when the section is interrupted, in the interrupting thread, or immediately if the section
    // is already interrupted. `interrupt` must not block. Replaces the earlier callback, which is neither running nor
    // called after this function returns. Null: no callback.
    void OnInterrupt(std::function<void()> interrupt);

   private:
    friend class ForkGate;
    void InterruptLocked();

    std::function<void()> interrupt_;  // the gate's mutex guards these two
    bool interrupted_ = false;
  };

  // The number of consecutive forks between the process that first used the gate and this process. If a thread finds
  // that it has changed, it is now the only thread, and the events that it expected from other threads will not come.
  static uint64_t Generation();

  // True once exit() has begun to destroy gRPC's statics. Interrupted work must then not be repeated.
  static bool Ending();

 private:
  struct State;
  static State& GetState();
  // Called when the library is loaded, because a fork() in the middle of it would leave a child that can never finish
  // it.
  static bool Install();
  static const bool installed_;
  // Called at exit(), because gRPC's own statics are about to be destroyed and no section may be left. Bounded, in case
  // a section hangs.
  static void AwaitExit();
  static void Prepare();
  static void ReleaseParent();
  static void ReleaseChild();
  static void WaitUntilEmpty(State& state);
};

}  // namespace kernix
