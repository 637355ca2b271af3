// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_gate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace kernix::server {

absl::StatusOr<std::unique_ptr<LoadGate::Permit>> LoadGate::Enter(CancellationPtr cancellation) {
  const MutexLock lock(mutex_);
  if (closed_)
    return absl::UnavailableError(
        "this kernixd is draining: it is about to stop and accepts no new loads; use another");
  const uint64_t id = next_id_++;
  inside_[id].cancellation = std::move(cancellation);
  return std::make_unique<Permit>(*this, id);
}

void LoadGate::Leave(uint64_t id) {
  const MutexLock lock(mutex_);
  inside_.erase(id);
  left_.NotifyAll();
}

void LoadGate::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
}

bool LoadGate::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

int LoadGate::inside() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(inside_.size());
}

bool LoadGate::WaitUntilEmpty(MonotonicTime deadline) {
  const MutexLock lock(mutex_);
  while (!inside_.empty()) {
    if (!left_.WaitUntil(mutex_, deadline)) return inside_.empty();
  }
  return true;
}

void LoadGate::CancelAll() {
  std::vector<CancellationPtr> running;
  {
    const MutexLock lock(mutex_);
    cancels_all_ = true;
    for (const auto& [id, load] : inside_) running.push_back(load.cancellation);
  }
  for (const CancellationPtr& cancellation : running) cancellation->Cancel();
}

bool LoadGate::cancels_all() const {
  const MutexLock lock(mutex_);
  return cancels_all_;
}

bool LoadGate::Cancel(uint64_t id, std::optional<UserId> owner) {
  CancellationPtr cancellation;
  {
    const MutexLock lock(mutex_);
    const auto found = inside_.find(id);
    if (found == inside_.end() || !found->second.shown) return false;
    if (owner && found->second.shown->owner() != ToNumber(*owner)) return false;
    cancellation = found->second.cancellation;
  }
  cancellation->Cancel();
  return true;
}

namespace {

// Names and labels come from requests that nobody has checked yet.
constexpr size_t kLongestName = 200;
constexpr int kMostSources = 8;

std::string Shortened(const std::string& text) { return ToValidUtf8(text.substr(0, kLongestName)); }

}  // namespace

void LoadGate::Permit::Show(UserId owner, const v1::LoadRequest& request, MonotonicTime now) {
  v1::RunningLoad load;
  load.set_owner(ToNumber(owner));
  load.set_name(Shortened(request.name()));
  for (int i = 0; i < std::min(request.source_size(), kMostSources); ++i) {
    load.add_source(Shortened(request.source(i).label()));
  }
  const MutexLock lock(gate_.mutex_);
  Inside& inside = gate_.inside_.at(id_);
  inside.shown = std::move(load);
  inside.begin = now;
}

void LoadGate::Permit::Note(const v1::Progress& progress) {
  const MutexLock lock(gate_.mutex_);
  Inside& inside = gate_.inside_.at(id_);
  if (inside.shown) *inside.shown->mutable_progress() = progress;
}

void LoadGate::Permit::Hide() {
  const MutexLock lock(gate_.mutex_);
  gate_.inside_.at(id_).shown.reset();
}

std::vector<v1::RunningLoad> LoadGate::List(MonotonicTime now) const {
  const MutexLock lock(mutex_);
  std::vector<v1::RunningLoad> loads;
  for (const auto& [id, load] : inside_) {
    if (!load.shown) continue;
    loads.push_back(*load.shown);
    loads.back().set_id(id);
    loads.back().set_elapsed_ms(std::chrono::duration_cast<Duration>(now - load.begin).count());
  }
  return loads;
}

UserLimit::UserLimit(Env& env, std::string things, std::string setting, int most)
    : env_(env), things_(std::move(things)), setting_(std::move(setting)), most_(most) {}

absl::StatusOr<std::unique_ptr<UserLimit::Permit>> UserLimit::Enter(const Identity& identity) {
  const MutexLock lock(mutex_);
  User& user = users_[identity.id()];
  if (most_ > 0 && user.count >= most_) {
    return MakeBusyError(StrCat("user ", identity.name(), " has ", user.count, " ", things_,
                                " under way, this kernixd's limit for one user: wait for some of them, or raise ",
                                setting_, " in its config"),
                         TurnOf(user));
  }
  ++user.count;
  return std::make_unique<Permit>(*this, identity.id());
}

Duration UserLimit::NextTurn(UserId user) {
  const MutexLock lock(mutex_);
  const auto found = users_.find(user);
  return found == users_.end() ? Duration(0) : TurnOf(found->second);
}

// Bounded, so that those who do not come again keep nobody waiting for long.
Duration UserLimit::TurnOf(User& user) {
  constexpr Duration kLongest{5'000};
  const MonotonicTime now = env_.Now();
  user.last_turn = std::min(std::max(user.last_turn, now) + user.pace, now + kLongest);
  return std::chrono::ceil<Duration>(user.last_turn - now);
}

void UserLimit::SetMost(int most) {
  const MutexLock lock(mutex_);
  most_ = most;
}

void UserLimit::Leave(UserId user) {
  constexpr Duration kFastest{5};
  constexpr Duration kSlowest{1'000};
  const MutexLock lock(mutex_);
  const auto found = users_.find(user);
  User& state = found->second;
  if (--state.count == 0) {
    users_.erase(found);
    return;
  }
  const MonotonicTime now = env_.Now();
  if (state.left != MonotonicTime())
    state.pace = std::clamp((3 * state.pace + std::chrono::floor<Duration>(now - state.left)) / 4, kFastest, kSlowest);
  state.left = now;
}

}  // namespace kernix::server
