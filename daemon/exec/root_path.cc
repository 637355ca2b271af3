// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/root_path.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/strings.h"
#include "daemon/exec/action.h"

namespace kernix::exec {
namespace {

// The length of the longest suffix of `text` that is a proper prefix of `pattern`.
size_t PartialMatchAtEnd(std::string_view text, std::string_view pattern) {
  for (size_t length = std::min(text.size(), pattern.size() - 1); length > 0; --length) {
    if (pattern.starts_with(text.substr(text.size() - length))) return length;
  }
  return 0;
}

}  // namespace

std::string ExpandRoot(std::string_view text, std::string_view root) {
  return absl::StrReplaceAll(ToAbsl(text), {{ToAbsl(kRootPlaceholder), ToAbsl(root)}});
}

std::string RemoveRoot(std::string_view text, std::string_view root) {
  RootRemover remover{std::string(root)};
  std::string shown = remover.Feed(text);
  return shown += remover.Finish();
}

std::string RootRemover::Feed(std::string_view piece) {
  pending_.append(piece);
  std::string shown;
  size_t found = pending_.find(root_);
  // At the very end, it is not known yet whether "/" follows.
  while (found != std::string::npos && found + root_.size() < pending_.size()) {
    shown.append(pending_, 0, found);
    const bool folder = pending_[found + root_.size()] == '/';
    if (!folder) shown += '.';
    pending_.erase(0, found + root_.size() + (folder ? 1 : 0));
    found = pending_.find(root_);
  }
  const size_t kept = found != std::string::npos ? root_.size() : PartialMatchAtEnd(pending_, root_);
  shown.append(pending_, 0, pending_.size() - kept);
  pending_.erase(0, pending_.size() - kept);
  return shown;
}

std::string RootRemover::Finish() {
  std::string rest = std::exchange(pending_, {});
  return rest == root_ ? "." : rest;
}

}  // namespace kernix::exec
