// SPDX-License-Identifier: Apache-2.0
//
// Names for a toolchain's folders that do not reveal where on a machine they are. Two toolchains with the same content
// then look the same in artifacts and in the index, wherever they are installed.
#pragma once

#include <string>
#include <vector>

#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

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

}  // namespace kernix::build
