// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/accept_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/os/epoll.h"
#include "common/os/posix_error.h"

namespace kernix::server {

absl::Status ConnectionQuota::Enter(UserId user) {
  const int of_user = open_of_user_[user];
  if (max_per_user_ > 0 && of_user >= max_per_user_) {
    return absl::ResourceExhaustedError(
        StrCat("uid ", ToNumber(user), " has ", of_user, " connections open, this kernixd's limit for one user: ",
               "close some, or raise max_connections_per_user (--max-connections-per-user, ",
               "KERNIX_MAX_CONNECTIONS_PER_USER)"));
  }
  if (of_user >= capacity_ - open_) {
    return absl::ResourceExhaustedError(StrCat(
        "uid ", ToNumber(user), " has ", of_user, " connections open, and this kernixd has descriptors for only ",
        capacity_,
        " connections of all users: close some, or raise its limit (ulimit -n; LimitNOFILE= of a systemd unit)"));
  }
  ++open_;
  ++open_of_user_[user];
  return absl::OkStatus();
}

bool ConnectionQuota::Leave(UserId user) {
  const auto found = open_of_user_.find(user);
  const bool is_last = --found->second == 0;
  if (is_last) open_of_user_.erase(found);
  --open_;
  return is_last;
}

int ConnectionCapacity(int descriptors) {
  struct rlimit limit {};
  constexpr rlim_t kMost = std::numeric_limits<int>::max();
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return static_cast<int>(kMost);
  return static_cast<int>(std::min(limit.rlim_cur / 4 * 3 / descriptors, kMost));
}

namespace {

constexpr Duration kLongestPause{10'000};
constexpr Duration kShortestPause{10};

}  // namespace

bool IdleMonitor::Step(const Activity& activity, MonotonicTime now) {
  const bool active = activity.running > 0 || activity.started != started_;
  // The first quiet step is active, too: the work of the step before may have ended only a moment ago.
  if (active || was_active_) active_at_ = now;
  was_active_ = active;
  started_ = activity.started;
  return timeout_.count() > 0 && now - active_at_ >= timeout_;
}

Duration IdleMonitor::Pause(MonotonicTime now) const {
  if (timeout_.count() == 0) return kLongestPause;
  // Rounded up, so that the step that waits for the end does not come slightly too early.
  const auto left = std::chrono::ceil<Duration>(active_at_ + timeout_ - now);
  const Duration round = was_active_ ? timeout_ / 10 : left;
  return std::clamp(round, kShortestPause, kLongestPause);
}

namespace {

// How long to leave the queue alone when the system has no descriptor or memory for another connection.
constexpr Duration kPause{100};

// Time between two log lines about users with too many connections.
constexpr Duration kLogAgain{10'000};

// Limit of refused connections that are still open.
constexpr size_t kMaxLeaving = 16;
// A stranger's connection is told only while there are fewer, so that members hear why they have to wait.
constexpr size_t kMaxStrangers = 8;

// A client that is silent for this long is handed to gRPC, which has its own time limits.
constexpr Duration kSilence{1'000};

bool Watch(int epoll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Unwatch(int epoll, int fd) { epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr); }

void SetNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

// Whether there is data to read, not just the connection's end.
bool CanBeRead(int fd) {
  char byte = 0;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

bool IsShortage(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOBUFS || error_number == ENOMEM;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AcceptLoop>> AcceptLoop::Start(Env& env, int listener, UniqueFd connected,
                                                              ConnectionQuota quota, AcceptHandler& handler,
                                                              std::function<void()> all_closed) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.ok()) return ErrnoStatus(errno, "make", "an epoll instance");
  UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.ok()) return ErrnoStatus(errno, "make", "an eventfd");
  if (!Watch(epoll.get(), stop.get(), EPOLLIN)) return ErrnoStatus(errno, "watch", "an eventfd");
  if (listener >= 0 && !Watch(epoll.get(), listener, EPOLLIN))
    return ErrnoStatus(errno, "watch", "the listening socket");
  std::unique_ptr<AcceptLoop> loop(new AcceptLoop(env, std::move(quota), handler, std::move(all_closed), listener,
                                                  std::move(epoll), std::move(stop)));
  loop->thread_ =
      std::thread([self = loop.get(), first = std::move(connected)]() mutable { self->Run(std::move(first)); });
  return loop;
}

AcceptLoop::AcceptLoop(Env& env, ConnectionQuota quota, AcceptHandler& handler, std::function<void()> all_closed,
                       int listener, UniqueFd epoll, UniqueFd stop)
    : env_(env),
      handler_(handler),
      all_closed_(std::move(all_closed)),
      listener_(listener),
      epoll_(std::move(epoll)),
      stop_(std::move(stop)),
      quota_(std::move(quota)) {}

AcceptLoop::~AcceptLoop() { Stop(); }

void AcceptLoop::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

Activity AcceptLoop::activity() const {
  pollfd waiting{listener_, POLLIN, 0};  // poll() ignores a negative descriptor
  return {.running = open_ + (poll(&waiting, 1, 0) > 0 ? 1 : 0), .started = total_};
}

void AcceptLoop::Run(UniqueFd connected) {
  if (connected.ok()) {
    SetNonBlocking(connected.get());  // otherwise gRPC blocks forever inside a read
    TakeIn(std::move(connected));
  }
  while (!stopping_) WaitAndHandle();
  watches_.clear();
  silent_.clear();
  leaving_.clear();
  open_ = 0;
}

// Timeout for AwaitEvents(): until accepting resumes, a connection has been silent for too long, or a refused client
// has had time to read the reason; otherwise infinite.
int AcceptLoop::Timeout() const {
  MonotonicTime until = paused_until_.value_or(MonotonicTime::max());
  for (const auto& [watch, silent] : silent_) until = std::min(until, silent.until);
  if (!leaving_.empty()) until = std::min(until, leaving_.front().until);
  if (until == MonotonicTime::max()) return -1;
  const auto left = std::chrono::ceil<Duration>(until - env_.Now());
  return static_cast<int>(std::max(left, Duration{0}).count());
}

void AcceptLoop::WaitAndHandle() {
  std::array<epoll_event, 64> events;
  const int count = posix::AwaitEvents(epoll_.get(), events, Timeout());
  // Also when there are other events: connections that come and go must not keep others out.
  if (paused_until_ && env_.Now() >= *paused_until_) ResumeAccepting();
  for (int i = 0; i < count; ++i) {
    const int fd = events[i].data.fd;
    if (fd == stop_.get()) {
      stopping_ = true;
    } else if (fd == listener_) {
      AcceptSome();
    } else if (silent_.contains(fd) && CanBeRead(fd)) {
      HandOver(fd);
    } else {
      Closed(fd);
    }
  }
  HandOverTheSilent();
  CutOffTheTurnedAway();
}

// Not all at once: a client that reconnects again and again could keep this thread from serving connections already
// open.
void AcceptLoop::AcceptSome() {
  constexpr int kAtOnce = 64;
  for (int i = 0; i < kAtOnce; ++i) {
    UniqueFd connection(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.ok()) {
      TakeIn(std::move(connection));
    } else if (IsShortage(errno)) {
      return PauseAccepting(errno);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;  // the queue is empty
    }
  }
}

void AcceptLoop::PauseAccepting(int error_number) {
  Log(LogLevel::kWarning, "accept_paused", {{"error", strerror(error_number)}, {"open_connections", open_.load()}});
  Unwatch(epoll_.get(), listener_);
  paused_until_ = env_.Now() + kPause;
}

void AcceptLoop::ResumeAccepting() {
  paused_until_.reset();
  Watch(epoll_.get(), listener_, EPOLLIN);
}

void AcceptLoop::TakeIn(UniqueFd connection) {
  const absl::StatusOr<Peer> peer = PeerOf(connection.get());
  const absl::Status admitted = peer.ok() ? handler_.Admit(*peer) : peer.status();
  if (!admitted.ok()) {
    LogOf("connection_refused", LogLevel::kWarning, "connection_refused",
          {{"uid", peer.ok() ? peer->uid : -1}, {"pid", peer.ok() ? peer->pid : -1}, {"reason", admitted.message()}});
    if (peer.ok()) {
      TellWhy(std::move(connection), kMaxStrangers,
              [&](UniqueFd fd) { handler_.RefuseStranger(std::move(fd), admitted); });
    }
    if (open_ == 0 && all_closed_) all_closed_();
    return;
  }
  const absl::Status room = quota_.Enter(UserId{peer->uid});
  if (!room.ok()) return TurnAway(std::move(connection), *peer, room);
  Open(std::move(connection), *peer);
}

void AcceptLoop::TurnAway(UniqueFd connection, const Peer& peer, const absl::Status& status) {
  ++turned_away_;
  handler_.NoteRefusal();
  const MonotonicTime now = env_.Now();
  TellWhy(std::move(connection), kMaxLeaving,
          [&](UniqueFd fd) { handler_.Refuse(std::move(fd), UserId{peer.uid}, status); });
  if (now < next_word_) return;
  next_word_ = now + kLogAgain;
  Log(LogLevel::kWarning, "too_many_connections",
      {{"uid", peer.uid}, {"pid", peer.pid}, {"reason", status.message()}, {"turned_away", turned_away_}});
}

void AcceptLoop::TellWhy(UniqueFd connection, size_t most, const std::function<void(UniqueFd connection)>& tell) {
  UniqueFd watch(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!watch.ok() || leaving_.size() >= most) return;
  leaving_.push_back({std::move(watch), env_.Now() + kSilence});
  tell(std::move(connection));
}

void AcceptLoop::Open(UniqueFd connection, const Peer& peer) {
  const UserId user{peer.uid};
  const std::string account = StrCat("uid ", peer.uid);
  UniqueFd watch(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!watch.ok() || !Watch(epoll_.get(), watch.get(), EPOLLIN | EPOLLRDHUP)) {
    LogOf(account, LogLevel::kWarning, "connection_dropped", {{"uid", peer.uid}, {"error", strerror(errno)}});
    quota_.Leave(user);
    return;
  }
  LogOf(account, LogLevel::kDebug, "connection", {{"uid", peer.uid}, {"pid", peer.pid}});
  ++open_;
  ++total_;
  const int key = watch.get();
  watches_[key] = {std::move(watch), user};
  silent_[key] = {std::move(connection), user, env_.Now() + kSilence};
  if (CanBeRead(key)) HandOver(key);
}

// After this, only the connection's end is watched.
void AcceptLoop::HandOver(int watch) {
  epoll_event event{};
  event.events = EPOLLRDHUP;
  event.data.fd = watch;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, watch, &event);
  auto node = silent_.extract(watch);
  handler_.Serve(std::move(node.mapped().connection), node.mapped().user);
}

void AcceptLoop::HandOverTheSilent() {
  const MonotonicTime now = env_.Now();
  std::vector<int> watches;
  for (const auto& [watch, silent] : silent_) {
    if (silent.until <= now) watches.push_back(watch);
  }
  for (const int watch : watches) HandOver(watch);
}

void AcceptLoop::CutOffTheTurnedAway() {
  const MonotonicTime now = env_.Now();
  for (; !leaving_.empty() && leaving_.front().until <= now; leaving_.pop_front()) {
    shutdown(leaving_.front().watch.get(), SHUT_RDWR);
  }
}

void AcceptLoop::Closed(int watch) {
  // Explicitly: the registration belongs to the connection, which stays open if gRPC has not closed its end.
  Unwatch(epoll_.get(), watch);
  // A client that has only stopped sending must not hold one of our descriptors either.
  shutdown(watch, SHUT_RDWR);
  const UserId user = watches_.extract(watch).mapped().user;
  silent_.erase(watch);
  if (quota_.Leave(user)) handler_.Left(user);
  if (--open_ == 0 && all_closed_) all_closed_();
}

}  // namespace kernix::server
