// SPDX-License-Identifier: Apache-2.0
//
// Keeps fork() and gRPC apart.
//
// A gRPC 1.51 channel that is alive during a fork() makes the child and the parent's next call hang. So everything that
// uses one, or that holds what a child must not share (a start lock, a half-read socket), is done inside a Section, and
// fork() waits, in a pthread_atfork handler, until there is no section left and holds new ones until it is through.
#pragma once

#include <cstdint>
#include <functional>

#include "common/base/mutex.h"

namespace kernix {

class ForkGate {
 public:
  // A stretch of work that no fork() can fall into. A short one is simply waited for. One that lasts is interrupted: it
  // must then end soon, with no gRPC object left, and may be done again from the start, in a new section.
  //
  // Nothing that runs inside may wait for the application (its callbacks, Python's interpreter lock): the thread that
  // forks may be the one that holds it. Sections of one thread do not nest.
  class Section {
   public:
    // Waits while a fork is under way. One that begins once the process ends is interrupted from the start, and what is
    // done inside must not use gRPC: see Ending().
    Section();
    ~Section();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

    // True when this section shall end.
    bool interrupted() const;

    // Interrupts it for another reason than a fork. From any thread, while the section lives.
    void Interrupt();

    // `interrupt` is called once when the section is interrupted, from the thread that does it, or right here when that
    // has happened. It must not block. Replaces the one before, which after this is neither running nor called; null:
    // none.
    void OnInterrupt(std::function<void()> interrupt);

   private:
    friend class ForkGate;
    void InterruptLocked();

    std::function<void()> interrupt_;  // these two are guarded by the gate's mutex
    bool interrupted_ = false;
  };

  // How many forks, in an unbroken line of children, lie between this process and the one that first used the gate. A
  // thread that finds it changed has become the only one: what it was waiting for from others will not come.
  static uint64_t Generation();

  // True once exit() has begun to take gRPC's statics away. What is interrupted must then not be done again.
  static bool Ending();

 private:
  struct State;
  static State& GetState();
  // Done when the library is loaded: a fork() in the middle of it would leave a child that can never finish it.
  static bool Install();
  static const bool installed_;
  // At exit(): gRPC's own statics go soon, so no section may be left. Bounded, for one that hangs.
  static void AwaitExit();
  static void Prepare();
  static void ReleaseParent();
  static void ReleaseChild();
  static void WaitUntilEmpty(State& state);
};

}  // namespace kernix
