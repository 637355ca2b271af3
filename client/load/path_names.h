// SPDX-License-Identifier: Apache-2.0
//
// From the names in a compiler's output to the paths that the user knows. The daemon never learns these paths: it calls
// a source by its label and a header by the number of its include root.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernix {

class PathNames {
 public:
  // `label` stands for the file `path`.
  void AddSource(std::string label, std::string path);

  // "inc/<n>/" stands for the n-th of `roots`.
  void SetIncludeRoots(std::vector<std::string> roots) { roots_ = std::move(roots); }

  // `text` with the names of places ("label:3:5: ...", "label(3): ...", "inc/0/x.h:7: ...") replaced by paths.
  std::string Restore(std::string_view text) const;

 private:
  bool RestoreLabel(std::string_view rest, size_t& length, std::string& path) const;
  bool RestoreRoot(std::string_view rest, size_t& length, std::string& path) const;

  std::vector<std::pair<std::string, std::string>> sources_;
  std::vector<std::string> roots_;
};

}  // namespace kernix
