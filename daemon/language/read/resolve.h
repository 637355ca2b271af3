// SPDX-License-Identifier: Apache-2.0
//
// Resolves sources and the caller's list of functions to specs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

// Limits for reading all sources of one request, since they come from other users. Each field counts down.
struct ReadingBudget {
  size_t tokens = 1'000'000;  // in the sources, including annotations
  MacroBudget macros;
  size_t instance_tokens = 1'000'000;  // in the parameter lists of template instances
  // In all exported functions: so many, and more for each function.
  size_t parameters = 1000;
  static constexpr size_t kParametersOfFunction = 64;
  // The same of the bytes of their names and expressions.
  size_t names = 64 << 10;
  static constexpr size_t kNamesOfFunction = 2048;
};

// Returns the functions to export, fully resolved:
//  - from annotations: every `// @BE name [tokens]`, in the order of the source;
//  - listed with tokens: these tokens, with `attr.<name>` typed from the signature;
//  - listed without tokens: inferred from the signature.
// A name may be qualified and may be an instance of a template (function_name.h). An unqualified name is also looked up
// in namespaces. `definitions` are preprocessor lines placed before the sources, from the flags -D and -U. Errors are
// INVALID_REQUEST, with label and line of the source if known; also for a request that exceeds a ReadingBudget.
absl::StatusOr<std::vector<FunctionSpec>> ResolveFunctions(const std::vector<SourceText>& sources,
                                                           const v1::Functions& functions,
                                                           const std::vector<std::string>& definitions = {});

// Like ResolveFunctions(), for sources that are compiled separately: returns the functions that each source exports, in
// the order of `sources`. An annotation belongs to its own source, a listed function to the source that defines it;
// sources may export nothing. INVALID_REQUEST if two sources define or annotate a function, or none does.
absl::StatusOr<std::vector<std::vector<FunctionSpec>>> ResolveUnitFunctions(
    const std::vector<SourceText>& sources, const v1::Functions& functions,
    const std::vector<std::string>& definitions = {});

// The position of a '{' that the sources of a unit do not close: "k.cu:3". The one that encloses the most text. Empty
// if there is none. nvcc's front end does not say that.
std::string FindOpenBrace(absl::Span<const SourceText> sources);

}  // namespace kernix::language
