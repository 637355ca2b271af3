// SPDX-License-Identifier: Apache-2.0
//
// Names for a toolchain's folders that do not say where on a machine they are. Two toolchains of the same content then
// look the same in artifacts and in the index, wherever their users have put them.
#pragma once

#include <string>
#include <vector>

#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

struct NamedFolder {
  std::string path;  // absolute, normalised
  std::string name;  // "kernix-cuda", "kernix-host-0", ...
};

// The folders of `toolchain` that headers come from; a folder inside another one comes after it.
std::vector<NamedFolder> ToolchainFolders(const toolchain::Toolchain& toolchain);

// "/opt/cuda/include/x.h" -> "kernix-cuda/include/x.h". A path in none of the folders stays as it is, normalised.
std::string PortablePath(const std::vector<NamedFolder>& folders, const std::string& path);

// The reverse. Empty when the name is of a folder that this toolchain does not have.
std::string LocalPath(const std::vector<NamedFolder>& folders, const std::string& path);

}  // namespace kernix::build
