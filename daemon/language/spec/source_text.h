// SPDX-License-Identifier: Apache-2.0
//
// Texts of a request, under the labels that diagnostics name them by.
#pragma once

#include <string>
#include <string_view>

namespace kernix::language {

struct SourceText {
  std::string label;
  std::string text;
};

// A text that somebody else keeps.
struct TextView {
  std::string_view label;
  std::string_view text;
};

}  // namespace kernix::language
