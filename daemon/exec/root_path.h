// SPDX-License-Identifier: Apache-2.0
//
// Keeps the path of an action's root, which differs from run to run, out of commands and of their output.
#pragma once

#include <string>
#include <string_view>

namespace kernix::exec {

// `text` with every kRootPlaceholder replaced by `root`.
std::string ExpandRoot(std::string_view text, std::string_view root);

// `text` with paths in `root` made relative: "<root>/a.cc" becomes "a.cc", "<root>" alone ".".
std::string RemoveRoot(std::string_view text, std::string_view root);

// RemoveRoot() for text that arrives in pieces, cut anywhere. Not thread-safe.
class RootRemover {
 public:
  explicit RootRemover(std::string root) : root_(std::move(root)) {}

  // The part of the text so far that can be shown. Holds back an end that may be the beginning of the root's path.
  std::string Feed(std::string_view piece);

  // The rest of the text.
  std::string Finish();

 private:
  std::string root_;
  std::string pending_;
};

}  // namespace kernix::exec
