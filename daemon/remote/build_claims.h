// SPDX-License-Identifier: Apache-2.0
//
// Which node builds a key that several need: a note in the upstream's action cache, which has no locks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

enum class ClaimState {
  kBuilding,
  kBuilt,   // the result was written
  kFailed,  // the compiler refuses, or the result cannot be shared: other nodes should build by themselves
  kLeft,    // it is no longer built there: another node should take over
};

struct BuildClaim {
  std::string node;
  uint64_t beat = 0;  // grows while the node builds
  ClaimState state = ClaimState::kBuilding;
  bool operator==(const BuildClaim&) const = default;
};

// Thread-safe. Calls block until their limits, as those of Upstream. Errors are the upstream's.
class BuildClaims {
 public:
  // `node`: a name that no other process has. `upstream` must outlive it.
  BuildClaims(Upstream& upstream, std::string node) : upstream_(upstream), node_(std::move(node)) {}

  const std::string& node() const { return node_; }

  // The last claim of `key`; nullopt: none.
  absl::StatusOr<std::optional<BuildClaim>> Read(const Digest& key, const Limits& limits);

  // Replaces whatever claim there is by one of this node.
  absl::Status Write(const Digest& key, uint64_t beat, ClaimState state, const Limits& limits);

 private:
  Upstream& upstream_;
  const std::string node_;
};

}  // namespace kernix::remote
