// SPDX-License-Identifier: Apache-2.0
#include "common/base/source_language.h"

#include <algorithm>
#include <iterator>

namespace kernix {

v1::Language LanguageOfFile(std::string_view path) {
  constexpr std::string_view kCpp[] = {".cpp", ".cc", ".cxx", ".c++", ".C"};
  const size_t dot = path.rfind('.');
  const std::string_view suffix = dot == std::string_view::npos ? "" : path.substr(dot);
  if (suffix == ".cu") return v1::LANGUAGE_CUDA;
  return std::find(std::begin(kCpp), std::end(kCpp), suffix) != std::end(kCpp) ? v1::LANGUAGE_CPP
                                                                               : v1::LANGUAGE_UNSPECIFIED;
}

}  // namespace kernix
