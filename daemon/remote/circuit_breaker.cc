// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/circuit_breaker.h"

#include <algorithm>

#include "common/base/log.h"

namespace kernix::remote {

std::optional<CircuitBreaker::Permit> CircuitBreaker::Ask() {
  const MutexLock lock(mutex_);
  if (state_.health != v1::UpstreamStatus::BROKEN) return Permit{};
  if (probing_ || env_.Now() < next_probe_) return std::nullopt;
  probing_ = true;
  return Permit{.is_probe = true};
}

void CircuitBreaker::Answered(Permit permit) {
  const MutexLock lock(mutex_);
  failures_ = 0;
  if (permit.is_probe) probing_ = false;
  if (state_.health == v1::UpstreamStatus::ANSWERS) return;
  if (state_.health == v1::UpstreamStatus::BROKEN) {
    Log(LogLevel::kInfo, "upstream_answers_again",
        {{"address", address_}, {"broken_ms", env_.UnixMillis() - state_.since_unix_ms}});
  }
  if (late_queries_ == 0) pause_ = kFirstPause;
  Enter(v1::UpstreamStatus::ANSWERS);
}

bool CircuitBreaker::Failed(Permit permit, const absl::Status& error) {
  const MutexLock lock(mutex_);
  state_.last_error = std::string(error.message());
  if (permit.is_probe) {
    probing_ = false;
    if (state_.health != v1::UpstreamStatus::BROKEN) return false;  // another call has been answered meanwhile
    pause_ = std::min(2 * pause_, kLongestPause);
    next_probe_ = env_.Now() + pause_;
    return false;
  }
  if (state_.health == v1::UpstreamStatus::BROKEN || ++failures_ < kFailuresToOpen) return false;
  Open(failures_);
  return true;
}

void CircuitBreaker::QueryWasLate(const absl::Status& error) {
  const MutexLock lock(mutex_);
  if (state_.health == v1::UpstreamStatus::BROKEN || ++late_queries_ < kFailuresToOpen) return;
  if (late_queries_ > kFailuresToOpen) pause_ = std::min(2 * pause_, kLongestPause);
  state_.last_error = std::string(error.message());
  Open(late_queries_);
}

void CircuitBreaker::QueryFound() {
  const MutexLock lock(mutex_);
  late_queries_ = 0;
  if (state_.health == v1::UpstreamStatus::ANSWERS) pause_ = kFirstPause;
}

void CircuitBreaker::Abandoned(Permit permit) {
  const MutexLock lock(mutex_);
  if (permit.is_probe) probing_ = false;
}

EngineHealth CircuitBreaker::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

void CircuitBreaker::Open(int failures) {
  Log(LogLevel::kWarning, "upstream_broken",
      {{"address", address_}, {"failures", failures}, {"message", state_.last_error}});
  openings_.Add();
  next_probe_ = env_.Now() + pause_;
  Enter(v1::UpstreamStatus::BROKEN);
}

void CircuitBreaker::Enter(v1::UpstreamStatus::Health health) {
  state_.health = health;
  state_.since_unix_ms = env_.UnixMillis();
}

WorkerPause::Answer WorkerPause::Ask() {
  const MutexLock lock(mutex_);
  if (!why_) return Answer::kSend;
  if (env_.Now() < next_probe_) return Answer::kHold;
  next_probe_ = env_.Now() + kProbeInterval;
  return Answer::kProbe;
}

void WorkerPause::NotTaken(std::string why) {
  const MutexLock lock(mutex_);
  why_ = std::move(why);
  next_probe_ = env_.Now() + kProbeInterval;
}

void WorkerPause::Taken() {
  const MutexLock lock(mutex_);
  why_.reset();
}

std::optional<std::string> WorkerPause::why() const {
  const MutexLock lock(mutex_);
  return why_;
}

}  // namespace kernix::remote
