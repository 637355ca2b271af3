// SPDX-License-Identifier: Apache-2.0
//
// Words and variables in the form in which exec takes them.
#pragma once

#include <string>
#include <vector>

namespace kernix {

// Pointers to the texts, and a null pointer at the end. Valid as long as `texts` does not change.
inline std::vector<char*> ToArgv(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace kernix
