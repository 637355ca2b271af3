// SPDX-License-Identifier: Apache-2.0
//
// How a request is built: a graph of steps, each one action. Pure functions: no file is read and nothing runs here.
//
// The input root of every compile step:
//   kernix-unit/         the translation unit; `#line` gives the user's labels to what is said about it
//   <label>              the sources once more, where the compiler looks for the lines that it shows
//   kernix/              our kernel headers, searched first: nobody's folder "brainevent" can stand in for ours
//   inc/0, inc/1, ...    the request's include roots, searched in this order
// Diagnostics name a header of the user as "inc/<root>/<path>".
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/build/request.h"
#include "daemon/exec/action.h"

namespace kernix::build {

// Part of every key: raise it when the same request would be built by other commands.
inline constexpr unsigned kPlanVersion = 2;

struct Step {
  exec::Action action;                         // its `inputs` lack what other steps make
  std::vector<std::string> inputs_from_steps;  // paths that earlier steps list among their outputs
};

struct Plan {
  std::vector<Step> steps;       // in an order that respects their needs
  std::string artifact_path;     // an output of the last step
  std::string dependency_file;   // an output in Makefile syntax: which headers were read; empty when there is none
  std::string generated_source;  // the translation unit, for build_directory
};

using HeaderContents = absl::flat_hash_map<Digest, exec::Content>;

// `contents` has every header of `request`, and every one of its flag files that is staged.
absl::StatusOr<Plan> MakePlan(const BuildRequest& request, const HeaderContents& contents,
                              std::chrono::milliseconds step_timeout);

}  // namespace kernix::build
