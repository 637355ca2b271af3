// SPDX-License-Identifier: Apache-2.0
//
// Resolves sources and the caller's list of functions to specs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

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

}  // namespace kernix::language
