// SPDX-License-Identifier: Apache-2.0
#include "common/flags/languages.h"

#include <algorithm>

#include "common/flags/flag_table.h"

namespace kernix {
namespace {

std::vector<std::string> Same(const std::vector<std::string>& words) { return words; }

template <typename Fits>
const LanguageTraits& First(Fits fits) {
  const auto found = std::find_if(Languages().begin(), Languages().end(), fits);
  return found == Languages().end() ? Languages().front() : *found;
}

}  // namespace

std::vector<LanguageTraits>& Languages() {
  static auto& languages = *new std::vector<LanguageTraits>{
      {.language = v1::LANGUAGE_CPP,
       .id = "cpp",
       .name = "C++",
       .suffixes = {".cpp", ".cc", ".cxx", ".c++", ".C"},
       .unit = "unit.cc",
       .compile_flags = &flags::kCompiler,
       .link_flags = &flags::kCompilerAtLink,
       .host_words_at_compile = Same,
       .host_words_at_link = Same,
       .debug_flags = {"-g", "-fno-omit-frame-pointer", "-DKERNIX_CHECK_INDICES"}},
      {.language = v1::LANGUAGE_CUDA,
       .id = "cuda",
       .name = "CUDA",
       .suffixes = {".cu"},
       .unit = "unit.cu",
       .runs_on_gpu = true,
       .needs_nvcc = true,
       .first_header = "cuda_runtime.h",
       .compile_flags = &flags::kNvcc,
       .link_flags = &flags::kNvcc,
       .host_words_at_compile = flags::HostWordsAtCompile,
       .host_words_at_link = flags::HostWordsAtLink,
       .lists_paths = true,
       .debug_flags = {"-g", "-G", "-Xcompiler=-fno-omit-frame-pointer", "-DKERNIX_CHECK_INDICES"}}};
  return languages;
}

const LanguageTraits& TraitsOf(v1::Language language) {
  return First([&](const LanguageTraits& one) { return one.language == language; });
}

v1::Language LanguageOfFile(std::string_view path) {
  const size_t dot = path.rfind('.');
  const std::string_view suffix = dot == std::string_view::npos ? "" : path.substr(dot);
  for (const LanguageTraits& traits : Languages()) {
    if (std::find(traits.suffixes.begin(), traits.suffixes.end(), suffix) != traits.suffixes.end()) {
      return traits.language;
    }
  }
  return v1::LANGUAGE_UNSPECIFIED;
}

}  // namespace kernix
