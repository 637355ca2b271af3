// SPDX-License-Identifier: Apache-2.0
//
// What both ways to resolve functions (resolve.h) share: reading the sources within limits, and words of errors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/read/function_name.h"
#include "daemon/language/read/resolve.h"
#include "daemon/language/read/signature.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

// Limits for reading all sources of one request, since they come from other users. Each field counts down.
struct ReadingBudget {
  size_t tokens = 1'000'000;  // in the sources, including comments
  MacroBudget macros;
  size_t instance_tokens = 1'000'000;  // in the parameter lists of template instances
  // In all exported functions: so many, and more for each function.
  size_t parameters = 1000;
  static constexpr size_t kParametersOfFunction = 64;
  // The same of the bytes of their names and expressions.
  size_t names = 64 << 10;
  static constexpr size_t kNamesOfFunction = 2048;
};

// Reads `sources` as one translation unit, with `definitions` (preprocessor lines) before it. The texts must outlive
// the result. INVALID_REQUEST if they have more tokens than `budget` allows.
absl::StatusOr<Preprocessed> ReadSources(absl::Span<const SourceText> sources,
                                         const std::vector<std::string>& definitions, ReadingBudget& budget);

// The position of a '{' that the sources of a unit do not close: "k.cu:3". The one that encloses the most text. Empty
// if there is none. nvcc's front end does not say that.
std::string FindOpenBrace(absl::Span<const SourceText> sources);

// The error for sources that do not say what to export.
absl::Status NoAnnotation(absl::Span<const SourceText> sources);

// For messages: "a.cu, b.cu".
std::string LabelsOf(absl::Span<const SourceText> sources);

// Whether `name` may be that of the function: it has the same scope, if it has one, and template arguments if the
// function is a template.
bool MayMean(const FunctionName& name, const Signature& signature);

// Like ResolveFunctions(), for sources that have been read.
absl::StatusOr<std::vector<FunctionSpec>> ResolveRead(absl::Span<const SourceText> sources, Preprocessed read,
                                                      const v1::Functions& functions, ReadingBudget& budget);

}  // namespace kernix::language
