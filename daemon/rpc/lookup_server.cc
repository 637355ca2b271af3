// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/lookup_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/os/epoll.h"
#include "common/os/posix_error.h"
#include "common/wire/quick_lookup.h"
#include "daemon/rpc/load_gate.h"
#include "daemon/rpc/service_metrics.h"

namespace kernix::server {
namespace {

// Reading a longer question takes long enough to hold others up, and so does sending a longer answer.
constexpr size_t kMostInLoop = 64 << 10;

// A load that costs more is for Load(), which says so. 20,000 headers cost this much.
constexpr uint64_t kMostCost = 16 << 20;

// If one request exhausts memory, the daemon must survive for all others. Returns what `work` returns; an exception
// becomes `failure` and a line of the log.
template <typename Result, typename Work>
Result LogExceptions(std::string_view user, Result failure, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    LogOf(user, LogLevel::kWarning, "lookup_failed", {{"user", user}, {"error", error.what()}});
    return failure;
  }
}

}  // namespace

// A connection on which a client asks one question after another. It is kept while no question is under way.
class LookupConnection {
 public:
  LookupConnection(Env& env, UniqueFd socket, IdentityPtr user, uint64_t limit)
      : env_(env), socket_(std::move(socket)), user_(std::move(user)), reader_(kLookupMagic.size(), limit) {}
  // Also for the accept loop, which holds a descriptor of it.
  ~LookupConnection() { End(); }
  LookupConnection(const LookupConnection&) = delete;
  LookupConnection& operator=(const LookupConnection&) = delete;

  int socket() const { return socket_.get(); }
  const Identity& user() const { return *user_; }
  FrameReader& reader() { return reader_; }
  bool kept() const { return user_permit_ == nullptr; }
  MonotonicTime since() const { return since_; }

  // A question begins, or will soon.
  absl::Status Begin(UserLimit& limit) {
    KERNIX_ASSIGN_OR_RETURN(user_permit_, limit.Enter(*user_));
    since_ = env_.Now();
    return absl::OkStatus();
  }

  // Its first byte is there. Returns whether that is news.
  bool NoteQuestion() {
    if (std::exchange(has_question_, true)) return false;
    since_ = env_.Now();
    return true;
  }

  // It is answered.
  void Finish() {
    user_permit_.reset();
    has_question_ = false;
    since_ = env_.Now();
  }

  void End() const { shutdown(socket_.get(), SHUT_RDWR); }

  // The loop's.
  bool watched = false;     // by its epoll
  bool is_counted = false;  // among those that are kept
  std::list<std::unique_ptr<LookupConnection>>::iterator position;

 private:
  Env& env_;
  const UniqueFd socket_;
  const IdentityPtr user_;
  FrameReader reader_;
  MonotonicTime since_;
  bool has_question_ = false;
  std::unique_ptr<UserLimit::Permit> user_permit_;
};

namespace {

// A question and how it is answered.
class Question {
 public:
  using Send = std::function<bool(const std::string& payload)>;

  Question(Backend& backend, const Identity& user, std::string_view text, MonotonicTime begun)
      : backend_(backend), user_(user), begun_(begun) {
    readable_ = request_.ParseFromArray(text.data(), static_cast<int>(text.size())) && request_.build_id() == BuildId();
  }

  // Answers what is known, if its files are unchanged; `check` must be younger than the question. `send` is as for
  // Answer(). Returns whether the answer was sent; nothing if none is known.
  std::optional<bool> AnswerIfKnown(FileCheck& check, const Send& send) {
    if (!readable_) return std::nullopt;
    std::optional<v1::ToolchainPaths> toolchain =
        backend_.toolchains.ChooseByName(request_.toolchain(), request_.language());
    if (!toolchain) return std::nullopt;
    *request_.mutable_toolchain() = *std::move(toolchain);
    std::optional<bool> sent;
    const auto deliver = [&](const v1::LoadResult& hit) {
      if (hit.ByteSizeLong() > kMostInLoop) return false;
      sent = send(ReplyWith(hit));
      return *sent;
    };
    if (backend_.builder.LookUpKnown(request_, user_.id(), check, deliver)) Note(true);
    return sent;
  }

  // Finds the answer, and passes its payload to `send`, which returns whether it was sent. For a hit, that decides
  // whether it counts.
  bool Answer(const Send& send) {
    std::optional<bool> sent;
    const auto deliver = [&](const v1::LoadResult& hit) {
      sent = send(ReplyWith(hit));
      return *sent;
    };
    Note(readable_ && LookUp(deliver));
    return sent ? *sent : send("");
  }

 private:
  std::string ReplyWith(const v1::LoadResult& hit) {
    key_ = hit.key();
    v1::LookupReply reply;
    *reply.mutable_result() = hit;
    return reply.SerializeAsString();
  }

  bool LookUp(const build::DeliverHit& deliver) {
    std::optional<v1::LoadRequest> load = LoadOf(request_);
    if (!load || LoadCost(*load) > kMostCost) return false;
    auto toolchain = backend_.toolchains.Choose(load->toolchain(), load->language());
    if (!toolchain.ok()) return false;
    *load->mutable_toolchain() = *std::move(toolchain);
    return backend_.builder.LookUp(*load, user_.id(), deliver);
  }

  void Note(bool hit) {
    const auto took = backend_.env.Now() - begun_;
    backend_.metrics.NoteQuickLookup(hit, took);
    if (hit) LogHit(user_, request_.name(), key_, std::chrono::duration_cast<Duration>(took));
  }

  Backend& backend_;
  const Identity& user_;
  const MonotonicTime begun_;
  v1::LookupRequest request_;
  bool readable_ = false;
  std::string key_;  // of a hit
};

// Returns whether the connection can go on.
bool AnswerSlowly(Backend& backend, exec::ByteQuota& reading, LookupConnection& connection, const std::string& text,
                  Duration patience, const CancellationPtr& cancellation) {
  const auto room =
      reading.Await(connection.user().id(), text.size(), backend.env.Now() + patience, cancellation.get());
  if (room == nullptr) return false;
  const auto send = [&](const std::string& payload) {
    const MonotonicTime deadline = backend.env.Now() + patience;
    return SendFrame(connection.socket(), "", payload, deadline).ok();  // not: the client is gone or slow
  };
  if (text.size() > kMostInLoop) {  // else AnswerAtOnce() has looked
    FileCheck check(backend.env);
    const auto sent = Question(backend, connection.user(), text, connection.since()).AnswerIfKnown(check, send);
    if (sent) return *sent;
  }
  return Question(backend, connection.user(), text, connection.since()).Answer(send);
}

// Returns whether the connection can go on; nothing if the answer is not known, or the question takes long to read.
std::optional<bool> AnswerAtOnce(Backend& backend, const LookupConnection& connection, const std::string& text,
                                 FileCheck& check) {
  if (text.size() > kMostInLoop) return std::nullopt;
  // A full send buffer means that the client reads no answers: drop it.
  const auto send = [&](const std::string& payload) {
    return SendFrame(connection.socket(), "", payload, /*deadline=*/{}).ok();
  };
  return Question(backend, connection.user(), text, connection.since()).AnswerIfKnown(check, send);
}

}  // namespace

bool BeginsLookup(int connection) {
  std::array<char, kLookupMagic.size()> first{};
  const ssize_t count = recv(connection, first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  return count == static_cast<ssize_t>(first.size()) && std::string_view(first.data(), first.size()) == kLookupMagic;
}

absl::StatusOr<std::unique_ptr<LookupServer>> LookupServer::Start(Backend& backend, LookupOptions options) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.ok()) return ErrnoStatus(errno, "make", "an epoll instance");
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) return ErrnoStatus(errno, "make", "an eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) return ErrnoStatus(errno, "watch", "an eventfd");
  std::unique_ptr<LookupServer> server(new LookupServer(backend, options, std::move(epoll), std::move(wake)));
  server->thread_ = std::thread([self = server.get()] { self->Run(); });
  return server;
}

LookupServer::LookupServer(Backend& backend, LookupOptions options, UniqueFd epoll, UniqueFd wake)
    : backend_(backend),
      options_(options),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      file_checker_(backend.env) {}

LookupServer::~LookupServer() { Stop(); }

void LookupServer::Serve(UniqueFd connection, IdentityPtr user) {
  const uint64_t limit = std::min<uint64_t>(kMaxLookupBytes, backend_.options.max_request_bytes);
  auto made = std::make_unique<LookupConnection>(backend_.env, std::move(connection), std::move(user), limit);
  if (gate_.closed()) return backend_.metrics.NoteRefusal(Refusal::kDraining);
  if (!made->Begin(limit_).ok()) return backend_.metrics.NoteRefusal(Refusal::kLookups);
  HandOver(std::move(made));
}

void LookupServer::HandOver(ConnectionPtr connection) {
  const MutexLock lock(mutex_);
  if (stopping_) return;
  arrived_.push_back(std::move(connection));
  eventfd_write(wake_.get(), 1);
}

void LookupServer::Stop() {
  gate_.Close();
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    eventfd_write(wake_.get(), 1);
  }
  if (thread_.joinable()) thread_.join();
  gate_.CancelAll();
  gate_.WaitUntilEmpty(MonotonicTime::max());
}

// --- The loop --------------------------------------------------------------------------------------------------------

void LookupServer::Run() {
  while (GoesOn()) Round();
  asking_.clear();
  waiting_.clear();
  kept_ = 0;
  const MutexLock lock(mutex_);
  arrived_.clear();
}

bool LookupServer::GoesOn() {
  const MutexLock lock(mutex_);
  return !stopping_;
}

void LookupServer::Round() {
  std::array<epoll_event, 64> events;
  const int timeout = Timeout();
  if (timeout == 0) std::this_thread::yield();  // whoever is awaited may need this processor
  const int count = posix::AwaitEvents(epoll_.get(), events, timeout);
  std::vector<LookupConnection*> asked;
  bool woken = false;
  for (int i = 0; i < count; ++i) {
    auto* connection = static_cast<LookupConnection*>(events[i].data.ptr);
    if (connection == nullptr) {
      woken = true;
    } else if (Read(*connection)) {
      asked.push_back(connection);
    }
  }
  if (woken) TakeArrivals(asked);  // not before: it may close connections
  if (!asked.empty()) Answer(asked);
  CloseLate();
}

// For AwaitEvents(): until the first connection is closed for its silence.
int LookupServer::Timeout() const {
  if (backend_.env.Now() < awake_until_) return 0;
  MonotonicTime until = MonotonicTime::max();
  if (!asking_.empty()) until = std::min(until, asking_.front()->since() + options_.patience);
  if (!waiting_.empty()) until = std::min(until, waiting_.front()->since() + options_.keep_time);
  if (until == MonotonicTime::max()) return -1;
  const auto left = std::chrono::ceil<Duration>(until - backend_.env.Now());
  return static_cast<int>(std::max(left, Duration{0}).count());
}

void LookupServer::TakeArrivals(std::vector<LookupConnection*>& asked) {
  eventfd_t count = 0;
  eventfd_read(wake_.get(), &count);
  std::vector<ConnectionPtr> arrived;
  {
    const MutexLock lock(mutex_);
    arrived.swap(arrived_);
  }
  for (ConnectionPtr& one : arrived) {
    LookupConnection& connection = *one;
    connection.position = asking_.insert(asking_.end(), std::move(one));
    if (connection.kept()) {
      Keep(connection);
    } else if (Read(connection)) {
      asked.push_back(&connection);
    } else {
      awake_until_ = backend_.env.Now() + options_.awake;
    }
  }
}

// Reads what has arrived. True if that completes a question. Else the connection may be gone.
bool LookupServer::Read(LookupConnection& connection) {
  const absl::StatusOr<bool> whole =
      LogExceptions(connection.user().name(), absl::StatusOr<bool>(absl::CancelledError()),
                    [&] { return connection.reader().ReadSome(connection.socket()); });
  const bool goes_on = whole.ok() && (!connection.reader().begun() || Begin(connection));
  if (goes_on && (*whole || Watch(connection))) return *whole;
  Release(connection).reset();
  return false;
}

// Notes that a question has begun. False if the user has too many.
bool LookupServer::Begin(LookupConnection& connection) {
  if (!connection.NoteQuestion()) return true;
  if (!connection.kept()) {  // a client that has connected before it had a question
    asking_.splice(asking_.end(), asking_, connection.position);
    return true;
  }
  if (!connection.Begin(limit_).ok()) {
    backend_.metrics.NoteRefusal(Refusal::kLookups);
    return false;
  }
  NoteKept(connection, -1);
  asking_.splice(asking_.end(), waiting_, connection.position);
  return true;
}

void LookupServer::Answer(const std::vector<LookupConnection*>& asked) {
  asked_ += asked.size();
  FileCheck check = file_checker_.Begin();  // younger than all these questions
  for (LookupConnection* connection : asked) {
    std::string text = connection->reader().Take();
    const std::optional<bool> answered = LogExceptions(connection->user().name(), std::optional(false), [&] {
      return AnswerAtOnce(backend_, *connection, text, check);
    });
    if (!answered) {
      AnswerInThread(*connection, std::move(text));
    } else if (*answered) {
      connection->Finish();
      Keep(*connection);
    } else {
      Release(*connection).reset();
    }
  }
  backend_.metrics.NoteFileCheck(check);
  file_checker_.Watch(check);
}

void LookupServer::AnswerInThread(LookupConnection& connection, std::string text) {
  ConnectionPtr released = Release(connection);
  const std::string user = released->user().name();
  const auto cancellation = std::make_shared<Cancellation>();
  absl::StatusOr<std::unique_ptr<LoadGate::Permit>> permit = gate_.Enter(cancellation);
  if (!permit.ok()) return backend_.metrics.NoteRefusal(Refusal::kDraining);
  LogExceptions(user, false, [&] {
    std::thread([this, cancellation, permit = *std::move(permit), text = std::move(text),
                 own = std::move(released)]() mutable {
      const bool goes_on = LogExceptions(own->user().name(), false, [&] {
        const ScopedOnCancel on_cancel(cancellation.get(), [&] { own->End(); });
        return AnswerSlowly(backend_, reading_, *own, text, options_.patience, cancellation);
      });
      if (goes_on) {
        own->Finish();
        HandOver(std::move(own));
      }
      own.reset();
      permit.reset();  // after this, the server may be gone
    }).detach();
    return true;
  });
}

// --- Connections that are kept ---------------------------------------------------------------------------------------

void LookupServer::Keep(LookupConnection& connection) {
  if (options_.max_kept_per_user == 0 || !Watch(connection)) return Release(connection).reset();
  waiting_.splice(waiting_.end(), asking_, connection.position);
  NoteKept(connection, +1);
  const bool user_has_too_many = kept_of_user_[connection.user().id()] > options_.max_kept_per_user;
  if (user_has_too_many || kept_ > options_.max_kept) CloseOldestOf(connection);
}

// At least that connection itself is the user's.
void LookupServer::CloseOldestOf(const LookupConnection& connection) {
  const auto oldest = std::find_if(waiting_.begin(), waiting_.end(), [&](const ConnectionPtr& other) {
    return other->user().id() == connection.user().id();
  });
  Release(**oldest).reset();
}

void LookupServer::CloseLate() {
  const MonotonicTime now = backend_.env.Now();
  while (!asking_.empty() && asking_.front()->since() + options_.patience <= now) Release(*asking_.front()).reset();
  while (!waiting_.empty() && waiting_.front()->since() + options_.keep_time <= now) Release(*waiting_.front()).reset();
}

bool LookupServer::Watch(LookupConnection& connection) {
  if (connection.watched) return true;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  connection.watched = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.socket(), &event) == 0;
  return connection.watched;
}

// Takes a connection out of the loop.
LookupServer::ConnectionPtr LookupServer::Release(LookupConnection& connection) {
  // Explicitly: the accept loop has a descriptor of it, too.
  if (std::exchange(connection.watched, false)) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket(), nullptr);
  }
  const bool waits = connection.is_counted;
  if (waits) NoteKept(connection, -1);
  Connections& list = waits ? waiting_ : asking_;
  ConnectionPtr released = std::move(*connection.position);
  list.erase(connection.position);
  return released;
}

void LookupServer::NoteKept(LookupConnection& connection, int change) {
  connection.is_counted = change > 0;
  kept_ += change;
  int& of_user = kept_of_user_[connection.user().id()];
  of_user += change;
  if (of_user == 0) kept_of_user_.erase(connection.user().id());
}

}  // namespace kernix::server
