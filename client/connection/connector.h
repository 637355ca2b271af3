// SPDX-License-Identifier: Apache-2.0
//
// From an endpoint to a session with a daemon that is fit to serve us.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"
#include "client/connection/daemon_starter.h"
#include "client/connection/endpoint.h"
#include "client/connection/fork_gate.h"
#include "client/connection/grpc_session.h"
#include "client/connection/oneshot.h"
#include "kernix/client.h"

namespace kernix {

using WarningSink = std::function<void(std::string_view)>;

// A session and what it is with.
struct Session {
  std::unique_ptr<PrivateDaemon> daemon;  // of a oneshot session
  std::unique_ptr<GrpcSession> grpc;
  std::string peer;  // for messages: "kernixd at /run/kernix/kernixd.sock"
};

// Thread-safe, and without a lock, so that a forked child can go on with it.
class Connector {
 public:
  Connector(ClientEnvironment environment, ClientOptions options)
      : environment_(std::move(environment)), options_(std::move(options)) {}

  enum class Need {
    kAnyDaemon,  // whatever answers there; none is started: kUnavailable
    kFit,        // a daemon that speaks our protocol and takes requests; started or replaced where it is our own
    kFitOrOneshot,
  };

  // A session with the daemon of `endpoint`. Where the machine's service does not answer or does not speak our
  // protocol, `endpoint` becomes the user's own, with a warning. Used inside `section`; when that is interrupted,
  // returns some error.
  absl::StatusOr<Session> Open(Endpoint& endpoint, Need need, ForkGate::Section& section, const WarningSink& warn);

  // Replaces `endpoint` by the user's own, telling why.
  absl::Status FallBackToOwn(Endpoint& endpoint, std::string_view reason, const WarningSink& warn);

  // The next Open() looks again at whom it meets: the daemon may be another one now.
  void Distrust() { fit_pid_ = 0; }

  const ClientEnvironment& environment() const { return environment_; }
  const ClientOptions& options() const { return options_; }

 private:
  enum class Verdict { kFit, kLeaving, kOtherBuild, kOtherProtocol };
  struct Meeting {
    Session session;
    pid_t pid = 0;           // of who listens
    bool is_daemon = false;  // whether that is the daemon itself, and not systemd for it
    Verdict verdict = Verdict::kFit;
    std::string peer_build;
  };

  absl::StatusOr<PeerSocket> Connect(const Endpoint& endpoint, ForkGate::Section& section);
  absl::StatusOr<Meeting> Meet(const Endpoint& endpoint, PeerSocket peer, ForkGate::Section& section);
  absl::StatusOr<Meeting> Reach(const Endpoint& endpoint, std::optional<pid_t> unwanted, ForkGate::Section& section);
  absl::StatusOr<Session> OpenForeign(const Endpoint& endpoint, ForkGate::Section& section);
  absl::StatusOr<Session> OpenOwn(const Endpoint& endpoint, ForkGate::Section& section, const WarningSink& warn);
  absl::StatusOr<PeerSocket> ConnectOrStart(const Endpoint& endpoint, std::optional<pid_t> unwanted,
                                            ForkGate::Section& section);
  absl::StatusOr<Session> OpenOneshot(const Endpoint& endpoint, const absl::Status& why, ForkGate::Section& section,
                                      const WarningSink& warn);
  void Trust(const Meeting& meeting) {
    if (meeting.is_daemon) fit_pid_ = meeting.pid;
  }
  absl::StatusOr<Session> Settle(Meeting meeting, const Endpoint& endpoint, const WarningSink& warn);

  const ClientEnvironment environment_;
  const ClientOptions options_;
  // The daemon that was found fit; later sessions with it need no question first. 0: none.
  std::atomic<pid_t> fit_pid_{0};
  // Two clients of different builds must not go on replacing each other's daemon.
  std::atomic<bool> replaced_{false};
};

}  // namespace kernix
