// SPDX-License-Identifier: Apache-2.0
//
// The inputs of an action.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/exec/blob.h"

namespace kernix::exec {

struct InputFile {
  std::string path;  // relative to the action's root
  BlobDigest digest;
  Content content = nullptr;  // null until needed
  bool executable = false;
};

inline InputFile MakeInput(std::string path, Content content) {
  const BlobDigest digest = BlobDigestOf(*content);
  return {std::move(path), digest, std::move(content)};
}

inline InputFile MakeInput(std::string path, std::string_view text) {
  return MakeInput(std::move(path), MakeContent(std::string(text)));
}

// A link in an action's root to a file or folder of the machine.
struct InputLink {
  std::string path;    // relative to the root
  std::string target;  // absolute
};

}  // namespace kernix::exec
