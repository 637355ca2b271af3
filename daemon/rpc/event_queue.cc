// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/event_queue.h"

#include <utility>

namespace kernix::server {
namespace {

uint64_t OutputBytes(const v1::LoadEvent& event) {
  return event.has_output() ? event.output().command().size() + event.output().text().size() : 0;
}

}  // namespace

void EventQueue::Push(v1::LoadEvent event) {
  if (event.has_output()) return PushOutput(std::move(event));
  if (event.has_progress() && !events_.empty() && events_.back().has_progress()) events_.pop_back();
  events_.push_back(std::move(event));
}

void EventQueue::PushOutput(v1::LoadEvent event) {
  const uint64_t bytes = OutputBytes(event);
  if (HasRoomFor(bytes)) {
    dropping_ = false;
  } else if (dropping_) {
    return;
  } else {
    dropping_ = true;
    event.mutable_output()->clear_command();
    event.mutable_output()->set_text(
        "[kernixd: output dropped here, because the client did not read it fast enough]\n");
  }
  output_bytes_ += OutputBytes(event);
  events_.push_back(std::move(event));
}

std::optional<v1::LoadEvent> EventQueue::Pop() {
  if (events_.empty()) return std::nullopt;
  v1::LoadEvent event = std::move(events_.front());
  events_.pop_front();
  output_bytes_ -= OutputBytes(event);
  return event;
}

}  // namespace kernix::server
