// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/flights.h"

#include <set>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace kernix::build {
namespace {

std::vector<Digest> DistinctDigests(const std::vector<HeaderRef>& headers) {
  std::set<Digest> digests;
  for (const HeaderRef& header : headers) digests.insert(header.digest);
  return {digests.begin(), digests.end()};
}

}  // namespace

void Flights::BeginWork() {
  const MutexLock lock(mutex_);
  ++work_;
}

void Flights::EndWork() {
  const MutexLock lock(mutex_);
  // Under the lock: once it is released, the builder may be destroyed.
  if (--work_ == 0) idle_.NotifyAll();
}

void Flights::StopAndWait() {
  std::vector<FlightPtr> running;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& [key, flight] : flights_) running.push_back(flight);
  }
  for (const FlightPtr& flight : running) flight->build_cancellation()->Cancel();
  const MutexLock lock(mutex_);
  while (work_ > 0) idle_.Wait(mutex_);
}

FlightPtr Flights::Join(const Key& key, bool only_running) {
  const auto found = flights_.find(key);
  return found != flights_.end() && found->second->Join(only_running) ? found->second : nullptr;
}

absl::StatusOr<FlightPtr> Flights::JoinOrMake(const PlannedLoad& load, bool& mine) {
  const MutexLock lock(mutex_);
  if (stopping_) return MakeError(v1::ErrorDetail::CANCELLED, "kernixd is stopping");
  mine = false;
  for (const bool needs_workers : {false, true}) {
    if (load.effort != Effort::kWait) break;
    if (FlightPtr building = Join({load.key, Effort::kBuild, needs_workers}, /*only_running=*/true)) return building;
  }
  const Key own{load.key, load.effort, load.effort == Effort::kBuild && load.needs_workers()};
  if (FlightPtr joined = Join(own)) return joined;
  mine = true;
  FlightPtr flight = Make(load);
  flight->Join();
  flights_.insert_or_assign(own, flight);
  return flight;
}

// A flight that takes the artifact from elsewhere needs no headers.
FlightPtr Flights::Make(const PlannedLoad& load) {
  if (load.effort != Effort::kBuild) return std::make_shared<Flight>(std::vector<Digest>(), linger_);
  return std::make_shared<Flight>(DistinctDigests(load.request.headers), linger_);
}

void Flights::Forget(const FlightPtr& flight) {
  const MutexLock lock(mutex_);
  absl::erase_if(flights_, [&](const auto& entry) { return entry.second == flight; });
}

}  // namespace kernix::build
