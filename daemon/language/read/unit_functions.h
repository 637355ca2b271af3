// SPDX-License-Identifier: Apache-2.0
//
// Decides which function each translation unit exports if every source is its own unit.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/language/read/resolve.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

// Like ResolveFunctions(), for sources that are compiled separately: returns the functions that each source exports, in
// the order of `sources`. An annotation belongs to its own source, a listed function to the source that defines it;
// sources may export nothing. INVALID_REQUEST if two sources define or annotate a function, or none does.
absl::StatusOr<std::vector<std::vector<FunctionSpec>>> ResolveUnitFunctions(
    const std::vector<SourceText>& sources, const v1::Functions& functions,
    const std::vector<std::string>& definitions = {});

}  // namespace kernix::language
