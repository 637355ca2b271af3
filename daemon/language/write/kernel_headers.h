// SPDX-License-Identifier: Apache-2.0
//
// The headers that come with kernix, embedded in the program.
#pragma once

#include <string>
#include <vector>

namespace kernix::language {

// One file of an action's input root.
struct GeneratedFile {
  std::string path;  // relative
  std::string text;
};

// kernix's own headers, embedded at build time. Paths are relative to the include root ("brainevent/common.h").
// Constant.
const std::vector<GeneratedFile>& KernelHeaders();

}  // namespace kernix::language
