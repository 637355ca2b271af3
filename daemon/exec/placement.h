// SPDX-License-Identifier: Apache-2.0
//
// Where steps may run: on this machine, or on the workers of an engine.
#pragma once

#include <optional>
#include <string_view>

#include "daemon/exec/action.h"

namespace kernix::exec {

enum class Placement {
  kLocal,
  kRemote,        // on workers alone: without them, the step fails
  kPreferRemote,  // on workers; here, if the engine fails
  kOverflow,      // here; on workers, if the step would wait here for too long
};

// "local", "remote", "prefer-remote", "overflow".
std::string_view PlacementName(Placement placement);
std::optional<Placement> FindPlacement(std::string_view name);

// For each kind of work. What is Work::kOther always runs here.
struct Placements {
  Placement host_compiles = Placement::kLocal;
  Placement device_compiles = Placement::kLocal;
  Placement links = Placement::kLocal;

  Placement Of(Work work) const;
  bool Has(Placement placement) const;
  bool AllLocal() const { return *this == Placements(); }
  bool operator==(const Placements&) const = default;
};

}  // namespace kernix::exec
