// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport/relay.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/os/epoll.h"
#include "common/os/posix_error.h"
#include "common/os/unix_socket.h"

namespace kernix::server {

bool FrameHead::ends_stream() const {
  return (type == FrameType::kData || type == FrameType::kHeaders) && (flags & 1) != 0;
}

void FrameReader::Read(std::string_view bytes, absl::FunctionRef<void(const FrameHead&)> seen) {
  while (true) {
    Skip(bytes);
    Collect(bytes);
    if (collected_ < kHeadBytes) return;
    const FrameHead head = Head();
    collected_ = 0;
    skip_ = head.length;
    seen(head);
  }
}

void FrameReader::Skip(std::string_view& bytes) {
  const size_t size = std::min<size_t>(bytes.size(), skip_);
  skip_ -= size;
  bytes.remove_prefix(size);
}

void FrameReader::Collect(std::string_view& bytes) {
  const size_t size = std::min(bytes.size(), kHeadBytes - collected_);
  std::copy_n(bytes.begin(), size, head_.begin() + collected_);
  collected_ += size;
  bytes.remove_prefix(size);
}

FrameHead FrameReader::Head() const {
  const auto& h = head_;
  constexpr uint32_t kStreamBits = 0x7fffffff;
  return {.length = uint32_t{h[0]} << 16 | uint32_t{h[1]} << 8 | h[2],
          .type = static_cast<FrameType>(h[3]),
          .flags = h[4],
          .stream = (uint32_t{h[5]} << 24 | uint32_t{h[6]} << 16 | uint32_t{h[7]} << 8 | h[8]) & kStreamBits};
}

namespace {

// "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
constexpr uint32_t kClientPreface = 24;

using Seconds = std::chrono::duration<double>;

}  // namespace

Duration UserTraffic::Wait(MonotonicTime now) {
  left_ = std::min(kPerSecond, left_ + Seconds(now - filled_at_).count() * kPerSecond);
  filled_at_ = now;
  return left_ > 0 ? Duration{0} : std::chrono::ceil<Duration>(Seconds((1 - left_) / kPerSecond));
}

TrafficMeter::TrafficMeter(UserTraffic& user) : user_(user), client_(kClientPreface), server_(0) {
  user_.Spend(UserTraffic::kAbandonedCall);
}

TrafficMeter::~TrafficMeter() {
  while (!calls_.empty()) Abandon(*calls_.begin());
}

absl::Status TrafficMeter::FromClient(std::string_view bytes) {
  user_.Spend(1);  // for the reading, if it comes byte by byte
  client_.Read(bytes, [this](const FrameHead& head) { Count(head); });
  if (header_bytes_ > kMaxHeaderBytes)
    return absl::ResourceExhaustedError(StrCat("the headers of a call have more than ", kMaxHeaderBytes, " bytes"));
  if (user_.calls > UserTraffic::kMaxCalls)
    return absl::ResourceExhaustedError(StrCat("more than ", UserTraffic::kMaxCalls, " calls at once"));
  return absl::OkStatus();
}

void TrafficMeter::Count(const FrameHead& head) {
  const bool asks = head.type == FrameType::kPing && !head.acknowledges();
  user_.Spend(asks ? UserTraffic::kPing : 1);
  if (head.type == FrameType::kReset) Abandon(head.stream);
  if (head.type == FrameType::kHeaders) Open(head.stream);
  if (head.type == FrameType::kHeaders || head.type == FrameType::kContinuation) AddHeaders(head.length);
}

void TrafficMeter::AddHeaders(uint32_t bytes) {
  user_.Spend(bytes * UserTraffic::kHeaderByte);
  header_bytes_ += bytes;
}

void TrafficMeter::Open(uint32_t stream) {
  header_bytes_ = 0;
  if (stream <= last_stream_) return;  // has been one
  last_stream_ = stream;
  calls_.insert(stream);
  ++user_.calls;
}

void TrafficMeter::Abandon(uint32_t stream) {
  if (calls_.contains(stream)) user_.Spend(UserTraffic::kAbandonedCall);
  End(stream);
}

void TrafficMeter::End(uint32_t stream) { user_.calls -= static_cast<int>(calls_.erase(stream)); }

void TrafficMeter::FromServer(std::string_view bytes) {
  server_.Read(bytes, [this](const FrameHead& head) {
    if (head.type == FrameType::kReset) Abandon(head.stream);
    if (head.ends_stream()) End(head.stream);
  });
}

namespace {

// Time between two log lines about one user.
constexpr Duration kLogAgain{10'000};

// As unsigned numbers.
constexpr uint32_t kRead = EPOLLIN;
constexpr uint32_t kWrite = EPOLLOUT;
constexpr uint32_t kGone = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

bool WouldBlock(ssize_t result) { return result < 0 && (errno == EAGAIN || errno == EINTR); }

}  // namespace

Relay::Connection::Connection(UniqueFd client_fd, UniqueFd server_fd, IdentityPtr who)
    : client{this, std::move(client_fd)}, server{this, std::move(server_fd)}, identity(std::move(who)) {}

absl::StatusOr<std::unique_ptr<Relay>> Relay::Start(Env& env) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.ok()) return ErrnoStatus(errno, "make", "an epoll instance");
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) return ErrnoStatus(errno, "make", "an eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) return ErrnoStatus(errno, "watch", "an eventfd");
  std::unique_ptr<Relay> relay(new Relay(env, std::move(epoll), std::move(wake)));
  relay->thread_ = std::thread([self = relay.get()] { self->Run(); });
  return relay;
}

Relay::~Relay() {
  Stop(env_.Now());
  thread_.join();
}

void Relay::Stop(MonotonicTime deadline) {
  {
    const MutexLock lock(mutex_);
    deadline_ = std::min(deadline_, deadline);
  }
  eventfd_write(wake_.get(), 1);
}

absl::StatusOr<UniqueFd> Relay::Connect(UniqueFd client, const IdentityPtr& user) {
  absl::StatusOr<std::pair<UniqueFd, UniqueFd>> ends = ConnectedPair(SOCK_STREAM | SOCK_NONBLOCK);
  if (!ends.ok()) {
    shutdown(client.get(), SHUT_RDWR);  // others may have a descriptor of it
    return ends.status();
  }
  {
    const MutexLock lock(mutex_);
    arrived_.push_back(std::make_unique<Connection>(std::move(client), std::move(ends->first), user));
  }
  eventfd_write(wake_.get(), 1);
  return std::move(ends->second);
}

// --- The thread ------------------------------------------------------------------------------------------------------

void Relay::Run() {
  while (GoesOn()) {
    std::array<epoll_event, 64> events;
    const int count = posix::AwaitEvents(epoll_.get(), events, Timeout());
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr != nullptr) Handle(*static_cast<End*>(events[i].data.ptr), events[i].events);
    }
    Forget();
    TakeArrivals();
    HearAgain();
  }
  for (const auto& [connection, owned] : connections_) Close(*connection);
  Forget();
}

bool Relay::GoesOn() {
  const MutexLock lock(mutex_);
  return env_.Now() < deadline_;
}

// For AwaitEvents(): until the relay ends, or a user may be heard again.
int Relay::Timeout() {
  Duration wait = Duration::max();
  const MonotonicTime now = env_.Now();
  for (User* user : waiting_) wait = std::min(wait, user->traffic.Wait(now));
  const MutexLock lock(mutex_);
  if (deadline_ != MonotonicTime::max()) wait = std::min(wait, std::chrono::ceil<Duration>(deadline_ - now));
  return wait == Duration::max() ? -1 : static_cast<int>(std::max(wait, Duration{0}).count());
}

void Relay::TakeArrivals() {
  eventfd_t wakes = 0;
  eventfd_read(wake_.get(), &wakes);
  std::vector<std::unique_ptr<Connection>> arrived;
  {
    const MutexLock lock(mutex_);
    arrived.swap(arrived_);
  }
  for (std::unique_ptr<Connection>& connection : arrived) Add(std::move(connection));
}

void Relay::Add(std::unique_ptr<Connection> connection) {
  User& user = users_.try_emplace(connection->identity->id(), env_.Now()).first->second;
  connection->user = &user;
  connection->meter = std::make_unique<TrafficMeter>(user.traffic);
  user.connections.insert(connection.get());
  Connection& added = *connection;
  connections_[&added] = std::move(connection);
  Listen(added);
}

void Relay::Handle(End& end, uint32_t events) {
  Connection& connection = *end.connection;
  if (connection.closed) return;
  const bool is_client = &end == &connection.client;
  // A client that has gone need not be answered; what gRPC has said before it closed is passed on.
  bool open = !is_client || (events & kGone) == 0;
  if (open && (events & kWrite) != 0) open = Send(end);
  if (open && is_client && (events & kRead) != 0) open = ReadClient(connection);
  if (open && !is_client && (events & ~kWrite) != 0) open = ReadServer(connection);
  return open ? Listen(connection) : Close(connection);
}

// Like ReadClient() and ReadServer(), returns false when the connection is to be closed.
bool Relay::Send(End& end) {
  if (end.unsent.empty()) return true;
  const ssize_t sent = send(end.fd.get(), end.unsent.data(), end.unsent.size(), MSG_NOSIGNAL);
  if (sent < 0) return WouldBlock(sent);
  end.unsent.erase(0, sent);
  if (end.unsent.empty()) end.unsent = std::string();  // without its memory
  return true;
}

bool Relay::MayBeHeard(Connection& connection) {
  if (waiting_.contains(connection.user)) return false;
  if (connection.user->traffic.Wait(env_.Now()) == Duration{0}) return true;
  waiting_.insert(connection.user);
  Note(connection, "asks for more than kernixd does for one user at a time, and waits");
  return false;
}

bool Relay::ReadClient(Connection& connection) {
  if (!MayBeHeard(connection)) return true;
  const ssize_t size = recv(connection.client.fd.get(), piece_.data(), piece_.size(), 0);
  if (size <= 0) return WouldBlock(size);
  const std::string_view bytes(piece_.data(), size);
  const absl::Status measured = connection.meter->FromClient(bytes);
  if (!measured.ok()) Note(connection, ToStd(measured.message()));
  if (!measured.ok()) return false;
  connection.server.unsent = bytes;
  return Send(connection.server);
}

bool Relay::ReadServer(Connection& connection) {
  if (!connection.client.unsent.empty()) return true;
  const ssize_t size = recv(connection.server.fd.get(), piece_.data(), piece_.size(), 0);
  if (size <= 0) return WouldBlock(size);
  const std::string_view bytes(piece_.data(), size);
  connection.meter->FromServer(bytes);
  connection.client.unsent = bytes;
  return Send(connection.client);
}

void Relay::HearAgain() {
  const MonotonicTime now = env_.Now();
  const std::vector<User*> waiting(waiting_.begin(), waiting_.end());
  for (User* user : waiting) {
    if (user->traffic.Wait(now) > Duration{0}) continue;
    waiting_.erase(user);
    for (Connection* connection : user->connections) Listen(*connection);
  }
}

// Whoever does not read the answers is not heard: what gRPC has to say would pile up there.
void Relay::Listen(Connection& connection) {
  const bool read = connection.client.unsent.empty();
  const bool heard = read && connection.server.unsent.empty() && !waiting_.contains(connection.user);
  Listen(connection.client, EPOLLRDHUP | (heard ? kRead : 0) | (read ? 0 : kWrite));
  Listen(connection.server, (read ? kRead : 0) | (connection.server.unsent.empty() ? 0 : kWrite));
}

// Without events, epoll must not know of it: it reports hang-ups that nobody has asked for.
void Relay::Listen(End& end, uint32_t events) {
  if (events == end.events) return;
  epoll_event event{.events = events, .data = {.ptr = &end}};
  const int change = events == 0 ? EPOLL_CTL_DEL : end.events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  epoll_ctl(epoll_.get(), change, end.fd.get(), &event);
  end.events = events;
}

void Relay::Close(Connection& connection) {
  connection.closed = true;
  closed_.push_back(&connection);
  Listen(connection.client, 0);
  Listen(connection.server, 0);
  shutdown(connection.client.fd.get(), SHUT_RDWR);  // the accept loop has a descriptor of it
  connection.client.fd.reset();
  connection.server.fd.reset();
}

void Relay::Note(Connection& connection, std::string_view reason) {
  const MonotonicTime now = env_.Now();
  if (now < connection.user->next_word) return;
  connection.user->next_word = now + kLogAgain;
  Log(LogLevel::kWarning, "too_much_traffic", {{"user", connection.identity->name()}, {"reason", reason}});
}

void Relay::Forget() {
  for (Connection* connection : closed_) {
    connection->user->connections.erase(connection);
    connections_.erase(connection);
  }
  closed_.clear();
}

}  // namespace kernix::server
