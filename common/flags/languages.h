// SPDX-License-Identifier: Apache-2.0
//
// What client and daemon ask of a language. Each has a row here, and a Compiler in kernixd (daemon/plan/plan_parts.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/flags/flag_table.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct LanguageTraits {
  using Words = std::vector<std::string>;

  v1::Language language = v1::LANGUAGE_UNSPECIFIED;
  std::string_view id;                     // for programs: "cuda"
  std::string_view name;                   // for people: "CUDA"
  std::vector<std::string_view> suffixes;  // of its source files; a text for people gets the first
  std::string_view unit;                   // the name of a translation unit in a build

  bool runs_on_gpu = false;  // for which it is compiled, with a stream and memory there
  bool needs_nvcc = false;   // besides the host compiler
  // Of the toolkit; the compiler includes it before a unit's first line, so that the flags' macros must come before it.
  // Empty: there is none.
  std::string_view first_header = {};

  // Flags as users write them, and those for the host compiler when it compiles and when it links.
  const flags::Table* compile_flags = nullptr;
  const flags::Table* link_flags = nullptr;
  Words (*host_words_at_compile)(const Words& words) = nullptr;
  Words (*host_words_at_link)(const Words& words) = nullptr;
  bool lists_paths = false;  // "-I a,b" names two folders
  // The flags for debuggers and profilers: source positions, and frames that can be walked. BE::In and BE::Out check
  // their indices (kernel/brainevent/typed.h).
  Words debug_flags;
};

// All languages, C++ first. A test may add one before anything asks.
std::vector<LanguageTraits>& Languages();

// Those of C++ for what is no language: whoever validates a request compares `language`.
const LanguageTraits& TraitsOf(v1::Language language);

// By the suffix. LANGUAGE_UNSPECIFIED for other names.
v1::Language LanguageOfFile(std::string_view path);

}  // namespace kernix
