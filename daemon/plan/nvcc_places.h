// SPDX-License-Identifier: Apache-2.0
//
// The toolchain as nvcc is told of it. nvcc hands paths to a shell; a folder whose path that would read is reached
// through a link in the action's root, with a name of ours.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/exec/input_file.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// Holds the links, "kernix-toolchain/0", ....
inline constexpr char kLinkFolder[] = "kernix-toolchain";

struct NvccPlaces {
  std::string nvcc;
  std::string host_compiler;
  std::vector<std::string> include_directories;
  std::vector<exec::InputLink> links;  // none where all paths are harmless

  // `path`, through a link when it lies where one leads.
  std::string Reach(const std::string& path) const;
};

// `toolchain` has a CUDA toolkit. TOOLCHAIN when a program itself has a name that a shell would read.
absl::StatusOr<NvccPlaces> FindNvccPlaces(const toolchain::Toolchain& toolchain);

// `path`, which a tool has named, without a link on its way.
std::string BehindLinks(const std::string& path, const std::vector<exec::InputLink>& links);

// A dependency file with what lies behind the links named by its own path.
std::string FollowLinks(std::string_view dependency_file, const std::vector<exec::InputLink>& links);

}  // namespace kernix::build
