// SPDX-License-Identifier: Apache-2.0
#include "client/connection/connector.h"

#include <chrono>
#include <thread>
#include <utility>

#include "client/connection/grpc_call.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "common/wire/call_status.h"

namespace kernix {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInfoTimeout{10'000};

absl::Status Unreachable(const std::string& message) { return MakeError(v1::ErrorDetail::UNREACHABLE, message); }

Session SessionWith(PeerSocket peer) {
  const std::string process = peer.pid == 0 ? "" : absl::StrCat(" (process ", peer.pid, ")");
  return Session{.connection = std::make_unique<Http2Connection>(std::move(peer.fd)),
                 .socket = peer.path,
                 .peer = StrCat("kernixd", process, " at ", peer.path)};
}

absl::Status NobodyThere(const ClientEnvironment& environment, const Endpoint& endpoint, const absl::Status& why) {
  const std::string nobody = StrCat("no kernixd answers (", endpoint.origin, "): ", why.message());
  const std::optional<pid_t> holder = HolderOf(environment, endpoint);
  if (!holder) return Unreachable(nobody);
  return Unreachable(StrCat(nobody, ". But kernixd (process ", *holder, ") holds the store ", endpoint.store_directory,
                            ": it is starting or stopping, or it hangs. `kernixctl shutdown` stops it"));
}

}  // namespace

// If the daemon's queue is full, waits, because the daemon exists and is busy accepting.
absl::StatusOr<PeerSocket> Connector::Connect(const Endpoint& endpoint, Caller& caller) {
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options_.start_timeout;
  while (true) {
    absl::StatusOr<PeerSocket> peer = ConnectTo(environment_, endpoint);
    if (!absl::IsUnavailable(peer.status())) return peer;
    if (caller.GaveUp() || std::chrono::steady_clock::now() >= deadline) return peer;
    std::this_thread::sleep_for(milliseconds(2));
  }
}

absl::StatusOr<Connector::Meeting> Connector::Meet(PeerSocket peer, Caller& caller) {
  Meeting meeting{.pid = peer.pid};
  meeting.session = SessionWith(std::move(peer));
  if (meeting.pid != 0 && fit_pid_ == meeting.pid) return meeting;

  v1::GetInfoResponse info;
  KERNIX_RETURN_IF_ERROR(CallOnce(*meeting.session.connection, meeting.session.peer, "GetInfo", v1::GetInfoRequest(),
                                  info, kInfoTimeout, caller));
  meeting.peer_build = info.build_id();
  meeting.store = info.store_directory();
  meeting.unwritable_store = info.unwritable_store();
  meeting.is_daemon = meeting.pid == info.pid();
  if (info.draining()) {
    meeting.verdict = Verdict::kLeaving;
  } else if (info.protocol_version() != kProtocolVersion) {
    meeting.verdict = Verdict::kOtherProtocol;
  } else if (info.build_id() != BuildId()) {
    meeting.verdict = Verdict::kOtherBuild;
  } else {
    Trust(meeting);
  }
  return meeting;
}

// A daemon that exits after the connection and before its first answer has not received a request. The request then
// goes to the next one. One that turns connections away gets time.
absl::StatusOr<Connector::Meeting> Connector::Reach(const Endpoint& endpoint, std::optional<pid_t> unwanted,
                                                    Caller& caller) {
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options_.start_timeout;
  while (true) {
    absl::StatusOr<Meeting> meeting = MeetOrStart(endpoint, unwanted, caller);
    const bool is_lost = DaemonWasLost(meeting.status()) && RetryAfter(meeting.status()).count() == 0;
    if (!is_lost || caller.GaveUp() || std::chrono::steady_clock::now() >= deadline) return meeting;
    std::this_thread::sleep_for(milliseconds(2));
  }
}

absl::StatusOr<Connector::Meeting> Connector::MeetOrStart(const Endpoint& endpoint, std::optional<pid_t> unwanted,
                                                          Caller& caller) {
  if (!unwanted) {
    absl::StatusOr<PeerSocket> peer = Connect(endpoint, caller);
    if (peer.ok()) return Meet(*std::move(peer), caller);
    if (!absl::IsNotFound(peer.status())) return peer.status();
    if (endpoint.kind != EndpointKind::kOwn || !options_.allow_start) {
      return NobodyThere(environment_, endpoint, peer.status());
    }
  }
  KERNIX_ASSIGN_OR_RETURN(Endpoint fresh, CreateOwnEndpoint(environment_, options_));
  if (!fresh.unusable.ok()) return WithOneshotHelp(fresh.unusable);
  Meeting meeting;
  const auto greet = [&](PeerSocket peer) -> absl::Status {
    KERNIX_ASSIGN_OR_RETURN(meeting, Meet(std::move(peer), caller));
    return absl::OkStatus();
  };
  KERNIX_RETURN_IF_ERROR(StartDaemon(environment_, options_, fresh, unwanted, greet, caller));
  meeting.was_started = true;
  return meeting;
}

// Decides what to do with a daemon that is not replaced.
absl::StatusOr<Session> Connector::Settle(Meeting meeting, const Endpoint& endpoint, const WarningSink& warn) {
  const bool is_own = endpoint.kind == EndpointKind::kOwn;
  if (meeting.verdict == Verdict::kOtherProtocol) {
    return Unreachable(StrCat(meeting.session.peer, " (", endpoint.origin, ") is of build ", meeting.peer_build,
                              ", which uses another protocol than this client, of build ", BuildId(), ": ",
                              is_own ? "install the kernixd that belongs to this client, or name it in $KERNIXD"
                                     : "upgrade the older of the two"));
  }
  if (meeting.verdict == Verdict::kLeaving) return Unreachable(StrCat(meeting.session.peer, " is stopping"));
  if (meeting.verdict == Verdict::kOtherBuild && is_own) {
    warn(StrCat(meeting.session.peer, " is of build ", meeting.peer_build, ", this client of build ", BuildId(),
                "; this client uses it, because both use the same protocol"));
  }
  Trust(meeting);
  return std::move(meeting.session);
}

absl::StatusOr<Session> Connector::OpenForeign(const Endpoint& endpoint, Caller& caller, const WarningSink& warn) {
  KERNIX_ASSIGN_OR_RETURN(Meeting meeting, Reach(endpoint, std::nullopt, caller));
  return Settle(std::move(meeting), endpoint, warn);
}

absl::StatusOr<Session> Connector::OpenOwn(const Endpoint& endpoint, Caller& caller, const WarningSink& warn) {
  if (!endpoint.unusable.ok()) return WithOneshotHelp(endpoint.unusable);
  KERNIX_ASSIGN_OR_RETURN(Meeting meeting, Reach(endpoint, std::nullopt, caller));
  if (meeting.was_started && !endpoint.hint.empty()) warn(endpoint.hint);
  if (meeting.was_started && !meeting.unwritable_store.empty()) {
    warn(StrCat("the store ", meeting.unwritable_store, " cannot be written; builds go to ", meeting.store,
                ", which lasts as long as the runtime folder. To keep them, set KERNIX_CACHE_DIR to a folder that you "
                "can write."));
  }
  if (meeting.verdict == Verdict::kFit) return std::move(meeting.session);
  // A stopping daemon is replaced as often as necessary; a daemon of another build only once.
  const bool replace = options_.allow_start && (meeting.verdict == Verdict::kLeaving || !replaced_.exchange(true));
  if (!replace) return Settle(std::move(meeting), endpoint, warn);
  meeting.session.connection.reset();
  KERNIX_ASSIGN_OR_RETURN(meeting, Reach(endpoint, meeting.pid, caller));
  return Settle(std::move(meeting), endpoint, warn);
}

absl::StatusOr<Session> Connector::OpenOneshot(const Endpoint& endpoint, const absl::Status& why, Caller& caller,
                                               const WarningSink& warn) {
  absl::StatusOr<Oneshot> oneshot = StartOneshot(environment_, options_, endpoint.store_directory, caller);
  if (!oneshot.ok()) return Annotate(oneshot.status(), ToStd(why.message()));
  warn(StrCat(why.message(), "\nA private kernixd serves this load alone",
              oneshot->store_directory == endpoint.store_directory
                  ? ""
                  : StrCat(", with a cache that is gone when this process ends (", oneshot->store_directory, ")"),
              "."));
  return Session{std::move(oneshot->daemon), std::move(oneshot->connection), "", "a private kernixd"};
}

absl::Status Connector::FallBackToOwn(Endpoint& endpoint, std::string_view reason, const WarningSink& warn) {
  KERNIX_ASSIGN_OR_RETURN(Endpoint own, OwnEndpoint(environment_, options_));
  warn(StrCat(reason, "; using this user's own kernixd instead"));
  if (!own.warning.empty()) warn(std::exchange(own.warning, ""));
  endpoint = std::move(own);
  return absl::OkStatus();
}

absl::StatusOr<Session> Connector::Open(Endpoint& endpoint, Need need, Caller& caller, const WarningSink& warn) {
  if (!endpoint.warning.empty()) warn(std::exchange(endpoint.warning, ""));
  if (need == Need::kAnyDaemon) {
    if (!endpoint.unusable.ok()) return NobodyThere(environment_, endpoint, endpoint.unusable);
    absl::StatusOr<PeerSocket> peer = Connect(endpoint, caller);
    if (absl::IsNotFound(peer.status())) return NobodyThere(environment_, endpoint, peer.status());
    if (!peer.ok()) return peer.status();
    return SessionWith(*std::move(peer));
  }
  if (endpoint.kind != EndpointKind::kOwn) {
    absl::StatusOr<Session> session = OpenForeign(endpoint, caller, warn);
    if (session.ok() || caller.GaveUp() || endpoint.kind == EndpointKind::kNamed) return session;
    if (RetryAfter(session.status()).count() > 0) return session;
    KERNIX_RETURN_IF_ERROR(FallBackToOwn(endpoint, ToStd(session.status().message()), warn));
  }
  absl::StatusOr<Session> session = OpenOwn(endpoint, caller, warn);
  const bool try_oneshot = need == Need::kFitOrOneshot && options_.allow_oneshot && options_.allow_start &&
                           !session.ok() && OneshotMayHelp(session.status()) && !caller.GaveUp();
  return try_oneshot ? OpenOneshot(endpoint, session.status(), caller, warn) : std::move(session);
}

}  // namespace kernix
