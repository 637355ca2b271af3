// SPDX-License-Identifier: Apache-2.0
//
// The lines under a compiler's messages, where the compiler is told to show none: it would open whatever file `#line`
// names. These come from texts at hand.
#pragma once

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace kernix::build {

// What messages may quote, by the name that they call it: a source's label, "inc/0/x.h".
class QuotableTexts {
 public:
  // `text` must outlive this. Of two texts of one name, none is quoted.
  void Add(const std::string& name, std::string_view text);

  // Line `line`, from 1, without its end. False when there is none.
  bool Line(const std::string& name, size_t line, std::string_view& found) const;

 private:
  absl::flat_hash_map<std::string, std::string_view> texts_;
};

// `output` with the line, and a mark under the column, after each message ("name:3:5: error: ...", of the assembler
// "name:3: Error: ...") about a text. Other lines stay as they are.
std::string WithSourceLines(std::string_view output, const QuotableTexts& texts);

}  // namespace kernix::build
