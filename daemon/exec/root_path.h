// SPDX-License-Identifier: Apache-2.0
//
// Keeps the path of an action's root, which is another one each time, out of what the action is and of what it says.
#pragma once

#include <string>
#include <string_view>

namespace kernix::exec {

// `text` with every kRootPlaceholder replaced by `root`.
std::string ExpandRoot(std::string_view text, std::string_view root);

// `text` with what lies in `root` made relative: "<root>/a.cc" becomes "a.cc", "<root>" alone ".".
std::string RemoveRoot(std::string_view text, std::string_view root);

// RemoveRoot() for text that comes in pieces, which may be cut anywhere. Not thread-safe.
class RootRemover {
 public:
  explicit RootRemover(std::string root) : root_(std::move(root)) {}

  // What of the text so far can be shown. Keeps an end that may be the beginning of the root's path.
  std::string Feed(std::string_view piece);

  // The rest.
  std::string Finish();

 private:
  std::string root_;
  std::string pending_;
};

}  // namespace kernix::exec
