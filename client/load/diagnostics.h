// SPDX-License-Identifier: Apache-2.0
//
// What a user learns of a compile: names in a compiler's output become the user's paths, an error gets a category, and
// a failed command becomes a folder for running it again.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Converts names in a compiler's output to the user's paths. The daemon never learns these paths: it refers to a source
// by its label and to a header by the index of its include root.
class PathNames {
 public:
  // Maps `label` to the file `path`.
  void AddSource(std::string label, std::string path);

  // Maps "inc/<n>/" to the n-th of `roots`.
  void SetIncludeRoots(std::vector<std::string> roots) { roots_ = std::move(roots); }

  // `text` with paths in place of labels and include roots ("label:3:5: ...", "label(3): ...", "inc/0/x.h:7: ...").
  std::string Restore(std::string_view text) const;

 private:
  bool RestoreLabel(std::string_view rest, size_t& length, std::string& path) const;
  bool RestoreRoot(std::string_view rest, size_t& length, std::string& path) const;

  std::vector<std::pair<std::string, std::string>> sources_;
  std::vector<std::string> roots_;
};

// Adds the links to the user's include roots. `headers` are those of the load, `roots` the folders of its include
// roots.
void AddIncludeRoots(const std::vector<v1::Header>& headers, const std::vector<std::string>& roots,
                     v1::FailedCommand& command);

// SaveFailedCommand() for the detail of an error.
absl::StatusOr<std::string> SaveFailedCommand(const v1::FailedCommand& command, const std::string& folder);

}  // namespace kernix
