// SPDX-License-Identifier: Apache-2.0
//
// Which other files a linker reads because of a file that it is given.
#pragma once

#include <string>
#include <vector>

#include "common/os/env.h"

namespace kernix::flags {

struct LinkFile {
  bool is_thin_archive = false;          // made by `ar` with T: its members are other files
  std::vector<std::string> other_files;  // that exist, and that it names by absolute path, as a linker script (GNU ld)
};

// A file that cannot be read names nothing.
LinkFile LookAtLinkFile(Env& env, const std::string& path);

}  // namespace kernix::flags
