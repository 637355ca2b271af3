// SPDX-License-Identifier: Apache-2.0
//
// Where a linker looks for libraries by itself, and which other files it reads because of a file that it is given.
#pragma once

#include <string>
#include <vector>

#include "common/base/processor.h"
#include "common/base/strings.h"
#include "common/os/env.h"

namespace kernix::flags {

// Where GNU ld looks for a library by itself, and no compiler says so.
inline const std::string kLinkersOwnFolders[] = {StrCat("/usr/local/lib/", kClangProcessor, "-linux-gnu"),
                                                 "/usr/local/lib64", "/usr/local/lib"};

struct LinkFile {
  bool is_thin_archive = false;  // made by `ar` with T: its members are other files
  // That exist, and that it names by absolute path, as a linker script (GNU ld), or that such a file names.
  std::vector<std::string> other_files = {};
};

// A file that cannot be read names nothing.
LinkFile LookAtLinkFile(Env& env, const std::string& path);

}  // namespace kernix::flags
