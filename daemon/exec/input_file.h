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

}  // namespace kernix::exec
