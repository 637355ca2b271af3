// SPDX-License-Identifier: Apache-2.0
//
// The log line at the end of each load, whether asked for by gRPC or by lookup.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "common/os/env.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// `name` is the module's.
void LogLoad(const Identity& user, const std::string& name, const absl::StatusOr<v1::LoadResult>& result,
             Duration took);

// For a hit, of the cache or of the upstream. `key` is raw.
void LogHit(const Identity& user, const std::string& name, const std::string& key, bool from_upstream, Duration took);

}  // namespace kernix::server
