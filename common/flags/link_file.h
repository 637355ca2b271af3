// SPDX-License-Identifier: Apache-2.0
//
// Which other files a linker reads because of a file that it is given.
#pragma once

#include <string>
#include <vector>

#include "common/os/env.h"

namespace kernix::flags {

struct LinkFile {
  bool is_thin_archive = false;  // made by `ar` with T: its members are other files
  // That exist, and that it names by absolute path, as a linker script (GNU ld), or that such a file names.
  std::vector<std::string> other_files = {};
};

// A file that cannot be read names nothing.
LinkFile LookAtLinkFile(Env& env, const std::string& path);

}  // namespace kernix::flags
