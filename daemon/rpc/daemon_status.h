// SPDX-License-Identifier: Apache-2.0
//
// What a daemon does now, as one caller may see it.
#pragma once

#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "daemon/rpc/backend.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// Administrators see everybody's loads and cache, others their own; of the rest they see how much there is. Checks
// every toolchain, which runs a compiler if its files have changed.
absl::StatusOr<v1::GetStatusResponse> StatusFor(const Backend& backend, const Identity& caller);

}  // namespace kernix::server
