// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/placement.h"

namespace kernix::exec {
namespace {

constexpr Placement kAll[] = {Placement::kLocal, Placement::kRemote, Placement::kPreferRemote, Placement::kOverflow};

}  // namespace

std::string_view PlacementName(Placement placement) {
  switch (placement) {
    case Placement::kLocal:
      break;
    case Placement::kRemote:
      return "remote";
    case Placement::kPreferRemote:
      return "prefer-remote";
    case Placement::kOverflow:
      return "overflow";
  }
  return "local";
}

std::optional<Placement> FindPlacement(std::string_view name) {
  for (const Placement placement : kAll) {
    if (PlacementName(placement) == name) return placement;
  }
  return std::nullopt;
}

Placement Placements::Of(Work work) const {
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

bool Placements::Has(Placement placement) const {
  return host_compiles == placement || device_compiles == placement || links == placement;
}

}  // namespace kernix::exec
