// SPDX-License-Identifier: Apache-2.0
//
// From sources and function specs to the text that is compiled.
#pragma once

#include <string>
#include <vector>

#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

// The translation unit: a prologue that includes the standard headers the sources lean on, each source after a `#line`
// with its label, then one XLA FFI handler a function, written on the C ABI. The same input gives the same text. It
// includes "brainevent/..." headers from KernelHeaders(). Diagnostics name a line of a source by its label: compile
// where a file of that name holds the source, and the compiler shows the line.
//
// `has_headers`: headers come with the sources. Their texts are not always at hand when the unit is, so the prologue is
// then a header of its own, kPrologueHeader, which has to lie beside KernelHeaders() and hold
// Prologue(sources and headers).
//
// `definitions`: preprocessor lines before everything else, which diagnostics name "<command-line>".
std::string GenerateTranslationUnit(v1::Language language, const std::vector<SourceText>& sources,
                                    const std::vector<FunctionSpec>& functions, bool allow_cuda_graph, bool has_headers,
                                    const std::vector<std::string>& definitions = {});

// nvcc includes <cuda_runtime.h> before a CUDA unit's first line. So there `definitions` are in a header of that name
// and this text, which has to be found first, and goes on to the toolkit's.
inline constexpr char kRuntimeHeader[] = "cuda_runtime.h";
std::string RuntimeHeaderWith(const std::vector<std::string>& definitions);

inline constexpr char kPrologueHeader[] = "brainevent/internal/prologue.h";

}  // namespace kernix::language
