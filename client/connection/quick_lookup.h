// SPDX-License-Identifier: Apache-2.0
//
// The client's side of common/wire/quick_lookup.h.
#pragma once

#include <optional>
#include <string>

#include "client/connection/client_environment.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// The hit of `request` at the daemon that listens at `socket`, without gRPC. Nothing where Load has to say more: a
// miss, an error, a very large request, no daemon or one of another build, or one that does not answer within
// `environment.lookup_patience`.
std::optional<v1::LoadResult> LookUpQuickly(const ClientEnvironment& environment, const std::string& socket,
                                            const v1::LoadRequest& request);

}  // namespace kernix
