// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/flight.h"

#include <set>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "daemon/builder/failure.h"

namespace kernix::build {
namespace {

// How much output is kept for askers who join late. Nobody reads longer output anyway.
constexpr size_t kMaxOutputBytes = 1 << 20;

}  // namespace

Flight::Flight(std::vector<Digest> headers, std::chrono::milliseconds linger)
    : headers_(std::move(headers)), linger_(linger) {}

bool Flight::Join(const exec::Asker& asker, bool only_running) {
  const MutexLock lock(mutex_);
  if (abandoned_ || state_ == State::kDone || (only_running && state_ != State::kBuilding)) return false;
  askers_->Join(asker);
  ++joins_;
  changed_.NotifyAll();
  return true;
}

Flight::Result Flight::Await(const exec::Asker& asker, LoadObserver& observer, bool verbose,
                             const CancellationPtr& cancellation, FetchHeaders fetch, StartBuild start) {
  Result result = CatchExceptions(kLoadNotHandled, [&] {
    Reader reader{observer, verbose};
    const ScopedOnCancel on_cancel(cancellation.get(), [&] {
      const MutexLock lock(mutex_);
      reader.cancelled = true;
      changed_.NotifyAll();
    });
    return WaitForResult(reader, fetch, start);
  });
  Leave(asker);
  return result;
}

Flight::Result Flight::WaitForResult(Reader& reader, FetchHeaders fetch, StartBuild start) {
  while (true) {
    TellNews(reader);
    bool is_mine = false;
    {
      const MutexLock lock(mutex_);
      if (HasNews(reader)) continue;
      if (state_ == State::kDone) return TheResult();
      if (reader.cancelled) return MakeError(v1::ErrorDetail::CANCELLED, "the load was cancelled");
      is_mine = state_ == State::kWaiting;
      if (is_mine) state_ = State::kFetching;
      if (!is_mine) changed_.Wait(mutex_);
    }
    if (is_mine) KERNIX_RETURN_IF_ERROR(FetchAndStart(fetch, start));
  }
}

Flight::Result Flight::TheResult() const {
  if (error_.has_value()) return MakeError(*error_);
  return result_;
}

absl::Status Flight::FetchAndStart(FetchHeaders fetch, StartBuild start) {
  absl::StatusOr<HeaderContents> contents =
      CatchExceptions("kernixd could not take in the headers", [&]() -> absl::StatusOr<HeaderContents> {
        if (headers_.empty()) return HeaderContents();
        return fetch(headers_);
      });
  {
    const MutexLock lock(mutex_);
    state_ = contents.ok() ? State::kBuilding : State::kWaiting;
    changed_.NotifyAll();
  }
  if (!contents.ok()) return contents.status();
  start(*std::move(contents));
  return absl::OkStatus();
}

bool Flight::HasNews(const Reader& reader) const {
  return reader.progress_seen != progress_version_ || (reader.verbose && reader.outputs_seen != outputs_.size());
}

void Flight::TellNews(Reader& reader) {
  std::vector<v1::Output> outputs;
  v1::Progress progress;
  bool has_progress = false;
  {
    const MutexLock lock(mutex_);
    has_progress = std::exchange(reader.progress_seen, progress_version_) != progress_version_;
    if (has_progress) progress = progress_;
    if (reader.verbose) {
      outputs.assign(outputs_.begin() + static_cast<ptrdiff_t>(reader.outputs_seen), outputs_.end());
      reader.outputs_seen = outputs_.size();
    }
  }
  if (has_progress) reader.observer.OnProgress(progress);
  for (const v1::Output& output : outputs) reader.observer.OnOutput(output);
}

void Flight::Leave(const exec::Asker& asker) {
  {
    const MutexLock lock(mutex_);
    askers_->Leave(asker);
    if (!askers_->empty() || state_ == State::kDone || !StaysEmpty()) return;
    abandoned_ = true;
  }
  build_cancellation_->Cancel();
}

// A flight that has not started to build has nothing to come back for.
bool Flight::StaysEmpty() {
  const uint64_t joins = joins_;
  const auto deadline = std::chrono::steady_clock::now() + linger_;
  while (state_ == State::kBuilding && joins_ == joins) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  return state_ != State::kDone && joins_ == joins;
}

void Flight::SetStepsTotal(int steps) {
  const MutexLock lock(mutex_);
  progress_.set_steps_total(static_cast<uint32_t>(steps));
}

void Flight::Complete(Result result) {
  const MutexLock lock(mutex_);
  state_ = State::kDone;
  if (result.ok()) {
    result_ = *std::move(result);
  } else {
    error_ = GetErrorDetail(result.status());
  }
  changed_.NotifyAll();
}

bool Flight::closed() const {
  const MutexLock lock(mutex_);
  return abandoned_ || state_ == State::kDone;
}

void Flight::OnQueued(const exec::Action& action, int actions_ahead) {
  const MutexLock lock(mutex_);
  progress_.set_state(v1::Progress::QUEUED);
  progress_.set_queue_position(static_cast<uint32_t>(actions_ahead));
  progress_.set_step(action.step);
  ++progress_version_;
  changed_.NotifyAll();
}

void Flight::OnStarted(const exec::Action& action) {
  v1::Output output;
  output.set_command(ShellCommand(exec::LocalCommand(action)));
  const MutexLock lock(mutex_);
  progress_.set_state(v1::Progress::RUNNING);
  progress_.set_queue_position(0);
  progress_.set_step(action.step);
  ++progress_version_;
  AddOutput(std::move(output));
}

void Flight::OnOutput(std::string_view text) {
  if (text.empty()) return;
  v1::Output output;
  output.set_text(ToValidUtf8(text));
  const MutexLock lock(mutex_);
  AddOutput(std::move(output));
}

void Flight::OnStepDone(int steps_done) {
  const MutexLock lock(mutex_);
  progress_.set_steps_done(static_cast<uint32_t>(steps_done));
  ++progress_version_;
  changed_.NotifyAll();
}

void Flight::AddOutput(v1::Output output) {
  if (output_bytes_ > kMaxOutputBytes) return;
  output_bytes_ += output.SpaceUsedLong();  // many short ones take most
  if (output_bytes_ > kMaxOutputBytes) {
    output.clear_command();
    output.set_text("[the rest of the output is omitted]\n");
  }
  outputs_.push_back(std::move(output));
  changed_.NotifyAll();
}

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

FlightPtr Flights::Join(const Key& key, const exec::Asker& asker, bool only_running) {
  const auto found = flights_.find(key);
  return found != flights_.end() && found->second->Join(asker, only_running) ? found->second : nullptr;
}

absl::StatusOr<FlightPtr> Flights::JoinOrMake(const PlannedLoad& load, bool& mine) {
  const MutexLock lock(mutex_);
  if (stopping_) return MakeError(v1::ErrorDetail::CANCELLED, "kernixd is stopping");
  mine = false;
  for (const bool needs_workers : {false, true}) {
    if (load.effort != Effort::kWait) break;
    const Key of_build{load.key, Effort::kBuild, needs_workers};
    if (FlightPtr building = Join(of_build, load.asker, /*only_running=*/true)) return building;
  }
  const Key own{load.key, load.effort, load.effort == Effort::kBuild && load.needs_workers()};
  if (FlightPtr joined = Join(own, load.asker)) return joined;
  mine = true;
  FlightPtr flight = Make(load);
  flight->Join(load.asker);
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
