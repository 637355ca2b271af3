// SPDX-License-Identifier: Apache-2.0
//
// How a request is built: a graph of steps, each one action. Pure functions: no file is read and nothing runs here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/build/request.h"
#include "daemon/exec/action.h"

namespace kernix::build {

struct Step {
  exec::Action action;             // its `inputs` lack what other steps make
  std::vector<std::string> inputs_from_steps;  // paths that earlier steps list among their outputs
};

struct Plan {
  std::vector<Step> steps;         // in an order that respects their needs
  std::string artifact_path;       // an output of the last step
  std::string dependency_file;     // an output in Makefile syntax: which headers were read; empty when there is none
  std::string generated_source;    // the translation unit, for build_directory
};

using HeaderContents = absl::flat_hash_map<Digest, exec::Content>;

// `headers` has the content of every header of `request`.
absl::StatusOr<Plan> MakePlan(const BuildRequest& request, const HeaderContents& headers,
                              std::chrono::milliseconds step_timeout);

}  // namespace kernix::build
