// SPDX-License-Identifier: Apache-2.0
//
// From sources and the caller's list of functions to their specs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

// Which functions to export, fully resolved:
//  - from annotations: every `// @BE name [tokens]`, in the order of the source;
//  - listed with tokens: these, with `attr.<name>` typed from the signature;
//  - listed without: inferred from the signature.
// A name may be qualified and may be an instance of a template (function_name.h); one that is not qualified is looked
// for in namespaces, too.
// `definitions` are preprocessor lines that stand before the sources: what the flags -D and -U say.
// Errors are INVALID_REQUEST, with label and line of the source where known; also for a request that would cost too
// much to read (see ReadingBudget).
absl::StatusOr<std::vector<FunctionSpec>> ResolveFunctions(const std::vector<SourceText>& sources,
                                                           const v1::Functions& functions,
                                                           const std::vector<std::string>& definitions = {});

}  // namespace kernix::language
