// SPDX-License-Identifier: Apache-2.0
//
// Where steps may run: on this machine, or on the workers of an engine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
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

inline constexpr std::string_view kPlacementNames[] = {"local", "remote", "prefer-remote", "overflow"};

constexpr std::string_view PlacementName(Placement placement) {
  return kPlacementNames[static_cast<size_t>(placement)];
}

inline std::optional<Placement> FindPlacement(std::string_view name) {
  const auto* const found = std::find(std::begin(kPlacementNames), std::end(kPlacementNames), name);
  if (found == std::end(kPlacementNames)) return std::nullopt;
  return static_cast<Placement>(found - std::begin(kPlacementNames));
}

// For each kind of work. Steps of Work::kOther always run here.
struct Placements {
  Placement host_compiles = Placement::kLocal;
  Placement device_compiles = Placement::kLocal;
  Placement links = Placement::kLocal;

  Placement Of(Work work) const {
    switch (work) {
      case Work::kOther:
        break;
      case Work::kHostCompile:
        return host_compiles;
      case Work::kDeviceCompile:
        return device_compiles;
      case Work::kLink:
        return links;
    }
    return Placement::kLocal;
  }
  bool Has(Placement placement) const {
    return host_compiles == placement || device_compiles == placement || links == placement;
  }
  bool AllLocal() const { return *this == Placements(); }
  bool operator==(const Placements&) const = default;
};

}  // namespace kernix::exec
