// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_gate.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/languages.h"
#include "daemon/language/read/resolve.h"

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

// --- Costs -----------------------------------------------------------------------------------------------------------

namespace {

// The constants were measured, with loads that wait for headers and loads in the queue (tests/security/costs_test.cc).

// A thread, a call of gRPC's, and what else each load has once.
constexpr uint64_t kLoad = 64 << 10;
// A text in the request, among the sources, in the unit, and beside it for compilers, which show its lines.
constexpr uint64_t kTextCopies = 4;
// A source is a file, with its label as a name. With separate_units, the label is also in the names of the unit's
// files.
constexpr uint64_t kSource = 400;
constexpr uint64_t kLabelCopies = 8;
// A header in the request's list, in the tree of its root, and as it is asked for and uploaded.
constexpr uint64_t kHeader = 500;
constexpr uint64_t kPathCopies = 3;
constexpr uint64_t kAllocation = 16;
// A function as it was resolved, and the text of its handler. Only reading the sources shows its parameters, of which
// language/read/resolve.h allows so many.
constexpr uint64_t kFunction = 2000;
constexpr uint64_t kParameter = 200;
constexpr uint64_t kParameters = language::ReadingBudget().parameters;
constexpr uint64_t kParametersOfFunction = language::ReadingBudget::kParametersOfFunction;
// The same of the bytes of their names: as they were resolved, and in the handler's text.
constexpr uint64_t kNameCopies = 3;
constexpr uint64_t kNames = language::ReadingBudget().names;
constexpr uint64_t kNamesOfFunction = language::ReadingBudget::kNamesOfFunction;
// A step that waits for its turn, without the user's flags.
constexpr uint64_t kStep = 36'000;
// A word of a command, besides its text; and how often each step that waits has its command: in the plan, as it would
// run faster, and in queues.
constexpr uint64_t kWord = sizeof(std::string);
constexpr uint64_t kCommandCopies = 8;
// "-Iinc/12", or with -iquote.
constexpr uint64_t kRoot = 40;
// A flag as it was read, and in the commands that a load has once.
constexpr uint64_t kFlag = 250;

constexpr double kMost = 1e18;

struct Part {
  double bytes = 0;  // a product of counts may be beyond 64 bits
  std::string what;
};

template <typename Strings>
uint64_t BytesOf(const Strings& strings) {
  uint64_t bytes = 0;
  for (const std::string& text : strings) bytes += text.size();
  return bytes;
}

uint64_t CountOf(std::string_view what, std::string_view text) {
  uint64_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

Part Texts(const v1::LoadRequest& request) {
  uint64_t bytes = 0;
  for (const v1::Source& source : request.source()) bytes += source.text().size();
  return {static_cast<double>(kTextCopies * bytes), StrCat(bytes, " bytes of source text")};
}

Part Headers(const v1::LoadRequest& request) {
  uint64_t bytes = 0;
  for (const v1::Header& header : request.header())
    bytes += kHeader + kPathCopies * (header.path().size() + kAllocation);
  return {static_cast<double>(bytes), StrCat(request.header_size(), " headers")};
}

// Annotations stand for functions that the request does not list.
Part Functions(const v1::LoadRequest& request) {
  auto count = static_cast<uint64_t>(request.functions().function_size());
  if (request.functions().from_annotations()) {
    for (const v1::Source& source : request.source()) count += CountOf("@BE", source.text());
  }
  constexpr uint64_t kEach = kFunction + kParametersOfFunction * kParameter + kNamesOfFunction * kNameCopies;
  return {static_cast<double>(kParameters * kParameter + kNames * kNameCopies) + static_cast<double>(count) * kEach,
          StrCat(count, " functions")};
}

// nvcc compiles in phases, some of them for each architecture; what it makes is kept by steps of their own.
double StepsOfUnit(const v1::LoadRequest& request) {
  if (!TraitsOf(request.language()).needs_nvcc) return 1;
  return 2 + request.options().architectures_size() * (request.options().keep() ? 4.0 : 1.0);
}

// The contents of all units' commands: each has the flags and its include roots again. nvcc gets flags for the host
// compiler as two words each.
Part Commands(const v1::LoadRequest& request) {
  const v1::Options& options = request.options();
  const bool separate = options.separate_units();
  const double units = separate ? request.source_size() : 1;
  double roots = options.include_root_count();
  if (separate) {
    roots = 0;
    for (const v1::Source& source : request.source()) roots += source.include_root_size();
  }
  const int words = TraitsOf(request.language()).needs_nvcc ? 2 : 1;
  const int flags = options.compile_flags_size();
  const double flag_bytes = flags * words * static_cast<double>(kWord) + BytesOf(options.compile_flags());
  const double command_bytes = units * flag_bytes + roots * words * kRoot;
  const auto each = static_cast<uint64_t>(roots / std::max(units, 1.0));
  return {StepsOfUnit(request) * (units * kStep + kCommandCopies * command_bytes),
          StrCat(separate ? request.source_size() : 1, separate ? " sources, each" : " unit,", " compiled with ", flags,
                 " flags and ", each, " include paths")};
}

Part Sources(const v1::LoadRequest& request) {
  uint64_t bytes = 0;
  for (const v1::Source& source : request.source()) bytes += kSource + kLabelCopies * source.label().size();
  return {static_cast<double>(bytes), StrCat(request.source_size(), " sources")};
}

Part Flags(const v1::LoadRequest& request) {
  const v1::Options& options = request.options();
  const double count = static_cast<double>(options.compile_flags_size()) + options.link_flags_size();
  return {count * kFlag + static_cast<double>(kCommandCopies * BytesOf(options.link_flags())),
          StrCat(options.compile_flags_size() + options.link_flags_size(), " flags")};
}

std::vector<Part> Parts(const v1::LoadRequest& request) {
  return {Texts(request), Sources(request), Headers(request), Functions(request), Commands(request), Flags(request)};
}

}  // namespace

uint64_t LoadCost(const v1::LoadRequest& request) {
  double bytes = kLoad;
  for (const Part& part : Parts(request)) bytes += part.bytes;
  // Before it is planned, a request of many empty parts may take more.
  return std::max(static_cast<uint64_t>(std::min(bytes, kMost)), request.SpaceUsedLong());
}

std::string CostliestPart(const v1::LoadRequest& request) {
  const std::vector<Part> parts = Parts(request);
  return std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.bytes < b.bytes; })
      ->what;
}

}  // namespace kernix::server
