// SPDX-License-Identifier: Apache-2.0
//
// A load that has been checked and planned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/digest.h"
#include "daemon/builder/known_loads.h"
#include "daemon/builder/load_observer.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/builder/trace_recorder.h"
#include "daemon/builder/upstream_budget.h"
#include "daemon/builder/upstream_cache.h"
#include "daemon/cache/entry.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"

namespace kernix::build {

struct PlannedLoad {
  BuildRequest request;
  Plan plan;
  KnownLoadPtr known;
  std::optional<Digest> request_digest;  // of what a lookup would ask; nothing if no lookup can know the answer
  cache::Tag tag;
  bool force = false;
  size_t max_parallel = 0;
  bool batch = false;
  bool frozen = false;  // its program expects no build any more
  Effort effort = Effort::kBuild;
  std::shared_ptr<TraceRecorder> trace;  // null for a lookup of what is in the cache

  // Set when the build starts.
  BuildStart started;
  HeaderContents headers;
  UpstreamBudgetPtr budget;  // null: the upstream is not asked

  const Digest& key() const { return known->key; }
  bool needs_workers() const { return request.toolchain->described != nullptr; }
};

}  // namespace kernix::build
