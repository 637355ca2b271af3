// SPDX-License-Identifier: Apache-2.0
//
// The ways in which kernixd makes builds faster. A setting switches each of them off by itself: to measure its savings
// (bench/shortcuts.py), and to find a faulty one.
#pragma once

#include <set>
#include <string_view>

#include "absl/status/statusor.h"

namespace kernix::build {

enum class Shortcut {
  kPhases,             // nvcc's phases in the place of one call (nvcc_phases.h)
  kStandIns,           // for cuda_runtime.h (slim_phases.h)
  kPreambles,          // preprocessed once (split_pass.h)
  kCompiledPreambles,  // compiled once (split_compile.h)
  kStepResults,        // of earlier builds
  kHostBodies,         // do not count for device code (`Reuse::host_bodies_count`)
  kLinkStubs,          // in the place of libraries (link_stub.h)
};

using Shortcuts = std::set<Shortcut>;

// Reads names, separated by commas: "phases", "stand_ins", ... INVALID_ARGUMENT, with all names, if one is unknown.
absl::StatusOr<Shortcuts> ParseShortcuts(std::string_view names);

}  // namespace kernix::build
