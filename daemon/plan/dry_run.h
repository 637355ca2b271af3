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

// The commands in the output of a dry run, in nvcc's order, as the words that nvcc's shell would make of them. Leaves
// out what nvcc does itself (the dependency file). nullopt if a line is not understood: a release may print anything.
std::optional<std::vector<Command>> CommandsOfDryRun(std::string_view output);

}  // namespace kernix::build
