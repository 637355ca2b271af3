// SPDX-License-Identifier: Apache-2.0
//
// The toolchain as commands name it: through links in the action's root. So commands contain no place of this machine,
// and no character that a shell started by nvcc would interpret.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/exec/input_file.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// The folder of the links: "toolchain/host", "toolchain/cuda", ....
inline constexpr char kLinkFolder[] = "toolchain";

struct ToolPlaces {
  std::string host_compiler;
  std::string nvcc;  // this and the following are empty without a CUDA toolkit
  std::vector<std::string> include_directories;
  std::vector<std::string> library_directories;
  std::vector<exec::InputLink> links;
  std::map<std::string, std::string>
      local_paths;  // values of placeholders for paths that must be absolute, see exec::Action

  // `path`, rewritten to go through a link if one leads to its folder.
  std::string Reach(const std::string& path) const;
};

// TOOLCHAIN if nvcc, or a host compiler that it calls, has a name that a shell would interpret.
absl::StatusOr<ToolPlaces> FindToolPlaces(const toolchain::Toolchain& toolchain);

// The environment of the toolchain's actions. It contains no place of this machine, and no folder that depends on the
// working folder: what names a folder is absolute once placeholders are replaced.
std::map<std::string, std::string> EnvironmentFor(const toolchain::Toolchain& toolchain);

// Resolves the links in `path`, a name that a tool has reported.
std::string BehindLinks(const std::string& path, const std::vector<exec::InputLink>& links);

// Rewrites a dependency file so that files behind the links have their own paths.
std::string FollowLinks(std::string_view dependency_file, const std::vector<exec::InputLink>& links);

// The output of a tool, with files of the toolchain named by their own paths, and sources by their labels.
std::string WithUsersNames(std::string_view output, const std::vector<exec::InputLink>& links);

}  // namespace kernix::build
