// SPDX-License-Identifier: Apache-2.0
//
// Adds source lines under a compiler's messages when the compiler itself is told to show none, because it would open
// whatever file `#line` names. The lines come from texts in memory.
#pragma once

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace kernix::build {

// The texts that messages may quote, by the name that messages use: a source's label, "inc/0/x.h".
class QuotableTexts {
 public:
  // `text` must outlive this object. If two texts have the same name, neither is quoted.
  void Add(const std::string& name, std::string_view text);

  // Finds line `line` (from 1), without its line end. False if there is no such line.
  bool Line(const std::string& name, size_t line, std::string_view& found) const;

 private:
  absl::flat_hash_map<std::string, std::string_view> texts_;
};

// `output` with the line, and a mark under the column, after each message about a text ("name:3:5: error: ...", or
// "name:3: Error: ..." from the assembler). Other lines stay as they are.
std::string WithSourceLines(std::string_view output, const QuotableTexts& texts);

}  // namespace kernix::build
