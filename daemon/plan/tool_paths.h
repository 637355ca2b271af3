// SPDX-License-Identifier: Apache-2.0
//
// The paths of a toolchain's tools and files for an action, and their names in its commands and outputs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/exec/blob.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// Names for a toolchain's folders that do not reveal where on a machine they are. So two toolchains with the same
// content have the same names in artifacts and in the index, wherever they are installed.
struct NamedFolder {
  std::string path;  // absolute, normalised
  std::string name;  // "kernix-cuda", "kernix-host-0", ...
};

// The folders of `toolchain` that headers come from. A folder inside another one comes after it.
std::vector<NamedFolder> ToolchainFolders(const toolchain::Toolchain& toolchain);

// "/opt/cuda/include/x.h" -> "kernix-cuda/include/x.h". A path in none of the folders is only normalised.
std::string PortablePath(const std::vector<NamedFolder>& folders, const std::string& path);

// The reverse. Empty if the name belongs to a folder that this toolchain does not have.
std::string LocalPath(const std::vector<NamedFolder>& folders, const std::string& path);

// The folder of the links: "toolchain/host", "toolchain/cuda", ....
inline constexpr char kLinkFolder[] = "toolchain";

struct ToolPaths {
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
absl::StatusOr<ToolPaths> FindToolPaths(const toolchain::Toolchain& toolchain);

// The environment of the toolchain's actions. It contains no path of this machine, and no folder that depends on the
// working folder: once placeholders are replaced, every folder is absolute.
std::map<std::string, std::string> EnvironmentFor(const toolchain::Toolchain& toolchain);

// Resolves the links in `path`, a name that a tool has reported.
std::string BehindLinks(const std::string& path, const std::vector<exec::InputLink>& links);

// Rewrites a dependency file so that files behind the links have their own paths.
std::string FollowLinks(std::string_view dependency_file, const std::vector<exec::InputLink>& links);

// The output of a tool, with files of the toolchain named by their own paths, and sources by their labels.
std::string WithUsersNames(std::string_view output, const std::vector<exec::InputLink>& links);

}  // namespace kernix::build
