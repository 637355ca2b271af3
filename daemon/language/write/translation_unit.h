// SPDX-License-Identifier: Apache-2.0
//
// Turns sources and function specs into the text that is compiled.
#pragma once

#include <string>
#include <vector>

#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/prologue.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

// The compiled text.
struct TranslationUnit {
  std::string sources;   // the unit
  std::string handlers;  // a header that it includes last, kHandlersHeader, in its folder

  // Both as one text.
  std::string Text() const;
};

// Generates the translation unit: a prologue that includes the standard headers on which the sources rely, each source
// after a `#line` with its label, then one XLA FFI handler for each function, written on the C ABI. The handlers are a
// system header, so that the user's warnings are not about them. The same input gives the same text. The text includes
// "brainevent/..." headers from KernelHeaders(). Diagnostics name a line of a source by its label; if a file with that
// name holds the source where the compiler runs, the compiler shows the line.
//
// `has_headers`: headers come with the sources. Their texts are not always available when the unit is generated, so the
// prologue is then a separate header, kPrologueHeader. It must be in the unit's folder and contain Prologue(sources and
// headers).
//
// `definitions`: preprocessor lines placed before everything else, unless they are `defined_before` (see below).
// Diagnostics name them "<command-line>". Our headers do not see those of their macros that have names of ours.
TranslationUnit GenerateTranslationUnit(v1::Language language, const std::vector<SourceText>& sources,
                                        const std::vector<FunctionSpec>& functions, bool allow_cuda_graph,
                                        bool has_headers, const std::vector<std::string>& definitions = {},
                                        bool defined_before = false);

// The names in our headers that a macro would hit, and that they do not test or define themselves. Constant.
const OurNames& NamesInHeaders();

// The header that a compiler includes before a unit's first line (LanguageTraits::first_header), with `definitions`
// before it. The compiler must find this header first; it then includes the toolkit's.
std::string HeaderWith(const std::vector<std::string>& definitions, std::string_view header);
inline constexpr char kRuntimeHeader[] = "cuda_runtime.h";                       // nvcc's
inline constexpr char kRuntimeHeaderGuard[] = "kernix_flag_macros_are_defined";  // that it has been read

inline constexpr char kPrologueHeader[] = "kernix_prologue.h";

// One file of an action's input root.
struct GeneratedFile {
  std::string path;  // relative
  std::string text;
};

// kernix's own headers, embedded at build time. Paths are relative to the include root ("brainevent/common.h").
// Constant.
const std::vector<GeneratedFile>& KernelHeaders();

}  // namespace kernix::language
