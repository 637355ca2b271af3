// SPDX-License-Identifier: Apache-2.0
//
// Opens a session with a suitable daemon for an endpoint.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/connection/daemon_starter.h"
#include "client/connection/endpoint.h"
#include "client/connection/grpc_call.h"
#include "kernix/client.h"

namespace kernix {

using WarningSink = std::function<void(std::string_view)>;

// A session and its peer.
struct Session {
  std::unique_ptr<DaemonProcess> daemon;  // the daemon of a oneshot session
  std::unique_ptr<Http2Connection> connection;
  std::string socket;  // where the daemon listens; empty: nowhere
  std::string peer;    // for messages: "kernixd (process 4711) at /run/kernix/kernixd.sock"
};

// Thread-safe without a lock, so that a forked child can continue to use it.
class Connector {
 public:
  Connector(ClientEnvironment environment, ClientOptions options)
      : environment_(std::move(environment)), options_(std::move(options)) {}

  enum class Need {
    kAnyDaemon,  // any daemon that answers; starts none: kUnavailable
    kFit,        // a daemon that uses our protocol and accepts requests; starts or replaces this user's own
    kFitOrOneshot,
  };

  // Opens a session with the daemon of `endpoint`. If the machine's service does not answer or does not use our
  // protocol, `endpoint` becomes the user's own, with a warning. Returns some error if `caller` gives up.
  absl::StatusOr<Session> Open(Endpoint& endpoint, Need need, Caller& caller, const WarningSink& warn);

  // Replaces `endpoint` by the user's own, and warns with `reason`.
  absl::Status FallBackToOwn(Endpoint& endpoint, std::string_view reason, const WarningSink& warn);

  // Makes the next Open() check the daemon again, because it may be a different one.
  void Distrust() { fit_pid_ = 0; }

  const ClientEnvironment& environment() const { return environment_; }
  const ClientOptions& options() const { return options_; }

 private:
  enum class Verdict { kFit, kLeaving, kOtherBuild, kOtherProtocol };
  struct Meeting {
    Session session;
    pid_t pid = 0;           // the listening process
    bool is_daemon = false;  // whether that is the daemon itself, rather than systemd
    Verdict verdict = Verdict::kFit;
    std::string peer_build;
    std::string store;
    std::string unwritable_store;
    bool was_started = false;
  };

  absl::StatusOr<PeerSocket> Connect(const Endpoint& endpoint, Caller& caller);
  absl::StatusOr<Meeting> Meet(PeerSocket peer, Caller& caller);
  absl::StatusOr<Meeting> Reach(const Endpoint& endpoint, std::optional<pid_t> unwanted, Caller& caller);
  absl::StatusOr<Session> OpenForeign(const Endpoint& endpoint, Caller& caller, const WarningSink& warn);
  absl::StatusOr<Session> OpenOwn(const Endpoint& endpoint, Caller& caller, const WarningSink& warn);
  absl::StatusOr<Meeting> MeetOrStart(const Endpoint& endpoint, std::optional<pid_t> unwanted, Caller& caller);
  absl::StatusOr<Session> OpenOneshot(const Endpoint& endpoint, const absl::Status& why, Caller& caller,
                                      const WarningSink& warn);
  void Trust(const Meeting& meeting) {
    if (meeting.is_daemon) fit_pid_ = meeting.pid;
  }
  absl::StatusOr<Session> Settle(Meeting meeting, const Endpoint& endpoint, const WarningSink& warn);

  const ClientEnvironment environment_;
  const ClientOptions options_;
  // The process of a daemon that was suitable; later sessions with it skip the check. 0: none.
  std::atomic<pid_t> fit_pid_{0};
  // Two clients of different builds must not replace each other's daemon forever.
  std::atomic<bool> replaced_{false};
};

}  // namespace kernix
