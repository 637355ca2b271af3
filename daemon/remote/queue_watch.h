// SPDX-License-Identifier: Apache-2.0
//
// Ends the call that follows an action if no builder has taken the action in time. Internal to the room.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>

#include <memory>

#include "common/os/env.h"

namespace kernix::remote {

// Thread-safe. What an engine says of an action decides: one of which it has said nothing yet does not wait, and one
// that has begun to run never waits again.
class QueueWatch {
 public:
  // From now on. 0: no limit.
  explicit QueueWatch(Duration limit);
  ~QueueWatch();
  QueueWatch(const QueueWatch&) = delete;
  QueueWatch& operator=(const QueueWatch&) = delete;

  void Waits();
  void Runs();

  // The engine has said last that the action waits.
  bool waits() const;
  // The action has waited for too long: its call ends, or must not begin.
  bool late() const;

  // A call that follows the action.
  class Call {
   public:
    // Both must outlive it.
    Call(QueueWatch& watch, grpc::ClientContext& context);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    QueueWatch& watch_;
  };

 private:
  struct State;

  const std::shared_ptr<State> state_;  // the alarm may ring while it is cancelled
  grpc::Alarm alarm_;
};

}  // namespace kernix::remote
