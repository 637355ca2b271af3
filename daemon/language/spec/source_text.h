// SPDX-License-Identifier: Apache-2.0
//
// The source texts of a request, with the labels that diagnostics show.
#pragma once

#include <string>
#include <string_view>

namespace kernix::language {

struct SourceText {
  std::string label;
  std::string text;
};

// A text that the caller owns.
struct TextView {
  std::string_view label;
  std::string_view text;
};

}  // namespace kernix::language
