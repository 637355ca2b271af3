// SPDX-License-Identifier: Apache-2.0
//
// Which function each translation unit exports, when every source is its own unit.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/language/read/resolve.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

// As ResolveFunctions(), for sources that are compiled one by one: what each of them exports, in the order of
// `sources`. An annotation belongs to the source that it stands in, a listed function to the one that defines it; some
// sources may export nothing. INVALID_REQUEST when two define or annotate a function, or none does.
absl::StatusOr<std::vector<std::vector<FunctionSpec>>> ResolveUnitFunctions(
    const std::vector<SourceText>& sources, const v1::Functions& functions,
    const std::vector<std::string>& definitions = {});

}  // namespace kernix::language
