// SPDX-License-Identifier: Apache-2.0
//
// Which daemon a client talks to.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"
#include "common/os/places.h"
#include "kernix/client.h"

namespace kernix {

enum class EndpointKind {
  kNamed,    // somebody said where it is; it is used as it is, never started or replaced
  kService,  // the machine's; what it cannot do, the user's own daemon does
  kOwn,      // of this user: started when it is not there, replaced when it is of another build
};

struct Endpoint {
  EndpointKind kind = EndpointKind::kOwn;
  std::string socket;   // empty: see `unusable`
  std::string origin;   // who said so, for messages: "$KERNIX_ADDRESS"
  std::string warning;  // what the user is to be told before a load uses it

  // Of kOwn alone.
  std::string store_directory;
  DaemonPlace place;
  absl::Status unusable;  // not OK: why no daemon can have a place; only a oneshot one can serve then
};

// The first of these that is set: ClientOptions::address; ClientOptions::store_directory (an own daemon on it);
// $KERNIX_ADDRESS; `address` in the config file; $KERNIX_CACHE_DIR (an own daemon on it); the machine's service, when
// its socket is there and we may use it; the own daemon on the user's default store, with a warning when that is
// because the service's socket is a stranger's.
//
// INVALID_REQUEST: an address that this version cannot use, a broken config file, address and store at once.
absl::StatusOr<Endpoint> ResolveEndpoint(const ClientEnvironment& environment, const ClientOptions& options);

// This user's own daemon, whatever the environment names. When somebody else has the folder where its place should be,
// with a warning that names him: its place is another one, or there is none (`unusable`).
absl::StatusOr<Endpoint> OwnEndpoint(const ClientEnvironment& environment, const ClientOptions& options);

}  // namespace kernix
