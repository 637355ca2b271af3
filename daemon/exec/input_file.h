// SPDX-License-Identifier: Apache-2.0
//
// A file that an action reads.
#pragma once

#include <memory>
#include <string>

namespace kernix::exec {

// Bytes that several actions can share.
using Content = std::shared_ptr<const std::string>;

struct InputFile {
  std::string path;  // relative to the action's root
  Content content;
};

// A link in an action's root to a file or folder of the machine.
struct InputLink {
  std::string path;    // relative to the root
  std::string target;  // absolute
};

}  // namespace kernix::exec
