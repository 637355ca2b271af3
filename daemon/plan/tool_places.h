// SPDX-License-Identifier: Apache-2.0
//
// The toolchain as commands name it: through links in the action's root. So a command holds no place of this machine,
// and nothing that a shell of nvcc's would read.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/exec/input_file.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// Holds the links: "toolchain/host", "toolchain/cuda", ....
inline constexpr char kLinkFolder[] = "toolchain";

struct ToolPlaces {
  std::string host_compiler;
  std::string nvcc;  // the following are empty without a CUDA toolkit
  std::vector<std::string> include_directories;
  std::vector<std::string> library_directories;
  std::vector<exec::InputLink> links;
  std::map<std::string, std::string> local_paths;  // by placeholders: what must be absolute, see exec::Action

  // `path`, through a link when it lies where one leads.
  std::string Reach(const std::string& path) const;
};

// TOOLCHAIN when nvcc or a host compiler that it calls has a name that a shell would read.
absl::StatusOr<ToolPlaces> FindToolPlaces(const toolchain::Toolchain& toolchain);

// The environment of the toolchain's actions, without a place of this machine.
std::map<std::string, std::string> EnvironmentFor(const toolchain::Toolchain& toolchain, const ToolPlaces& places);

// `path`, which a tool has named, without a link on its way.
std::string BehindLinks(const std::string& path, const std::vector<exec::InputLink>& links);

// A dependency file with what lies behind the links named by its own path.
std::string FollowLinks(std::string_view dependency_file, const std::vector<exec::InputLink>& links);

}  // namespace kernix::build
