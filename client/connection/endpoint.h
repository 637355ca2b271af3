// SPDX-License-Identifier: Apache-2.0
//
// Which daemon a client connects to (the environment of the process and the client's options say so), and the
// connection to its socket.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "common/os/folders.h"
#include "common/os/unique_fd.h"
#include "kernix/client.h"

namespace kernix {

// A connected socket and the process that listens at its other end.
struct PeerSocket {
  UniqueFd fd;
  std::string path;
  pid_t pid = 0;  // 0 if it runs outside of our process namespace
  uid_t uid = 0;
};

// Connects without waiting, and only to a process of a user whom `self` may trust to run code for it: `self`, root, or
// the user `kernix` of the machine's service.
//
// Returns kNotFound if no process listens there; kUnavailable if its queue is full (try again); and kPermissionDenied
// if this process may not connect, or if the listener belongs to another user, whom the message names.
absl::StatusOr<PeerSocket> ConnectUnix(const std::string& path, uid_t self);

// Two connected sockets. Started programs inherit neither.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> MakeSocketPair();

// Whether `owner` is a user whom `self` may trust.
bool IsTrustedUser(uid_t owner, uid_t self);

// Returns `fd`, or a copy above the numbers of standard input, output and error. In a process that has closed these, a
// new descriptor gets such a number, and a child that receives its own would lose ours.
UniqueFd AboveStandardStreams(UniqueFd fd);

// The client's inputs from its process and machine. Injected, so that a test can set the user and the folders.
struct ClientEnvironment {
  Env* env = &Env::Posix();
  GetEnv get_env = ProcessGetEnv;
  uid_t uid = geteuid();
  std::string service_socket = kServiceSocket;
  // How long a daemon may take to answer a lookup. If it takes longer, for example when it first examines a compiler,
  // the client requests a load instead.
  std::chrono::milliseconds lookup_patience{1'000};
};

enum class EndpointKind {
  kNamed,    // the user named its address; used as it is, never started or replaced
  kService,  // the machine's; what it cannot do, the user's own daemon does
  kOwn,      // this user's: started if it is not running, replaced if it is of another build
};

struct Endpoint {
  EndpointKind kind = EndpointKind::kOwn;
  std::string socket;   // empty: see `unusable`
  std::string origin;   // the source of the address, for messages: "$KERNIX_ADDRESS"
  std::string warning;  // a warning for the user before a load uses this endpoint
  std::string hint;     // the same, but said only when a daemon is started: the machine's service, and how to join it

  // Only for kOwn.
  std::string store_directory;
  std::vector<std::string> read_stores;  // where a daemon that this client starts looks, too
  RunFolder run_folder;
  absl::Status unusable;  // not OK: why no daemon can have a run folder; then only a oneshot daemon can serve
};

// Uses the first of these that is set: ClientOptions::address; ClientOptions::store_directory (with this user's own
// daemon); $KERNIX_ADDRESS; $KERNIX_CACHE_DIR (with this user's own daemon); the machine's service, if its socket
// exists and this user may use it; this user's own daemon on the default store. Warns if the last one is used because
// the service's socket belongs to a stranger.
//
// Returns INVALID_REQUEST for an address that this version cannot use, and for an address together with a store.
absl::StatusOr<Endpoint> ResolveEndpoint(const ClientEnvironment& environment, const ClientOptions& options);

// This user's own daemon, whatever the environment names. If another user owns the run folder, `warning`
// names that user, and the daemon has another one, or none (`unusable`). A client that only looks for a daemon leaves
// no folder behind; one that starts a daemon has to create it.
absl::StatusOr<Endpoint> OwnEndpoint(const ClientEnvironment& environment, const ClientOptions& options);
absl::StatusOr<Endpoint> CreateOwnEndpoint(const ClientEnvironment& environment, const ClientOptions& options);

// Connects as ConnectUnix() does to the daemon of `endpoint`. If none listens in the run folder of this user's own
// daemon, connects to the daemon that holds the store: a process with another environment has started it with another
// run folder.
absl::StatusOr<PeerSocket> ConnectTo(const ClientEnvironment& environment, const Endpoint& endpoint);

// For this user's own daemon: the process that holds the store, whether or not anybody can connect to it.
std::optional<pid_t> HolderOf(const ClientEnvironment& environment, const Endpoint& endpoint);

}  // namespace kernix
