// SPDX-License-Identifier: Apache-2.0
//
// What nvcc says it would run (`nvcc --dryrun`).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernix::build {

using Command = std::vector<std::string>;

struct DryRun {
  // In nvcc's order, as the words that nvcc's shell would make of them, without what nvcc does itself (the dependency
  // file).
  std::vector<Command> commands;
  std::string path;  // the PATH of that shell, which begins with nvcc's own folders
};

// The output of a dry run. nullopt if a line is not understood: a release may print anything.
std::optional<DryRun> ReadDryRun(std::string_view output);

}  // namespace kernix::build
