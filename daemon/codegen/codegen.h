// SPDX-License-Identifier: Apache-2.0
//
// The front of codegen: from the sources and the caller's functions to one translation unit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/codegen/function_spec.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::codegen {

// Part of every key: raise it when the same request would generate other text.
inline constexpr int kGeneratorVersion = 4;

struct SourceText {
  std::string label;
  std::string text;
};

// A text that somebody else keeps.
struct TextView {
  std::string_view label;
  std::string_view text;
};

// One file of an action's input root.
struct GeneratedFile {
  std::string path;  // relative
  std::string text;
};

// Which functions to export, fully resolved:
//  - from annotations: every `// @BE name [tokens]`, in the order of the source;
//  - listed with tokens: these, with `attr.<name>` typed from the signature;
//  - listed without: inferred from the signature.
// A name may be qualified and may be an instance of a template (function_name.h); one that is not qualified is looked
// for in namespaces, too.
// `definitions` are preprocessor lines that stand before the sources: what the flags -D and -U say.
// Errors are INVALID_REQUEST with label and line of the source where one is known; also for a request that would cost
// more than people's do (see ReadingBudget).
absl::StatusOr<std::vector<FunctionSpec>> ResolveFunctions(const std::vector<SourceText>& sources,
                                                           const v1::Functions& functions,
                                                           const std::vector<std::string>& definitions = {});

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

// kernix's own headers, path relative to the include root ("brainevent/common.h"), embedded in the program at build
// time. Constant.
const std::vector<GeneratedFile>& KernelHeaders();

}  // namespace kernix::codegen
