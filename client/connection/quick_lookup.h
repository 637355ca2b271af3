// SPDX-License-Identifier: Apache-2.0
//
// The client's side of common/wire/quick_lookup.h.
#pragma once

#include <optional>

#include "client/connection/client_environment.h"
#include "client/connection/endpoint.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Connects to the daemon of `endpoint`, if one listens, for a lookup that follows soon: the daemon takes in the
// connection while the caller prepares the request. Does nothing if a connection is kept.
void AnnounceLookup(const ClientEnvironment& environment, const Endpoint& endpoint);

// Looks up `request` at the daemon of `endpoint`, without gRPC, on the connection of the lookup before it if that is
// still open. Returns nullopt if the caller must use Load:
// after a miss or an error, for a very large request, if no daemon or one of another build listens, or if it does not
// answer within `environment.lookup_patience`.
std::optional<v1::LoadResult> LookUpQuickly(const ClientEnvironment& environment, const Endpoint& endpoint,
                                            const v1::LoadRequest& request);

}  // namespace kernix
