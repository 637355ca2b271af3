// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "common/base/load_warning.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "daemon/request/request.h"

namespace kernix::build {
namespace {

using language::FunctionSpec;
using language::ParameterKind;

v1::LoadWarning Warning(std::string_view name, std::string text) {
  v1::LoadWarning warning;
  warning.set_name(std::string(name));
  warning.set_text(std::move(text));
  return warning;
}

std::string Place(const FunctionSpec& function) {
  return function.declared_at.empty() ? "" : StrCat(function.declared_at, ": ");
}

// A handler launches a __global__ function on the call's stream.
bool LacksStream(const FunctionSpec& function) {
  return !function.is_global && function.CountOf(ParameterKind::kStream) == 0;
}

v1::LoadWarning WithoutStream(const FunctionSpec& function) {
  return Warning(
      warning::kCudaWithoutStream,
      StrCat(Place(function), "function '", function.name,
             "' takes no stream. What it launches on CUDA's default stream does not wait for the arrays that JAX is "
             "still computing. Take a 'cudaStream_t stream' as the last parameter, and launch on it."));
}

// Whether its tensors, or pointers, were taken for results only because none of them is const. A BE::Out is a result on
// purpose, and so is a single one, as of a function that fills an array.
bool HasOnlyResults(const FunctionSpec& function) {
  if (!function.is_inferred || function.CountOf(ParameterKind::kResult) < 2) return false;
  const auto is_input_or_typed = [](const language::Parameter& parameter) {
    return (parameter.IsTyped() && !parameter.is_pointer) || parameter.kind == ParameterKind::kArgument ||
           parameter.kind == ParameterKind::kArguments || parameter.kind == ParameterKind::kOptionalArgument;
  };
  return std::none_of(function.parameters.begin(), function.parameters.end(), is_input_or_typed);
}

v1::LoadWarning OnlyResults(const FunctionSpec& function) {
  std::string tokens;
  for (const std::string& token : function.Tokens()) StrAppend(&tokens, " ", token);
  const std::string_view arrays = function.is_global ? "pointers" : "BE::Tensor parameters";
  const std::string_view input = function.is_global ? "'const float* x'" : "'const BE::Tensor'";
  return Warning(warning::kOnlyResults,
                 StrCat(Place(function), "all arrays of function '", function.name,
                        "' are results, because none of its ", arrays, " is const. Write ", input,
                        " for an input; or, if there are none, name the tokens: // @BE ", function.name, tokens));
}

// A request may have thousands of functions.
void Shorten(std::vector<v1::LoadWarning>& warnings) {
  std::map<std::string, size_t> counts;
  std::erase_if(warnings, [&](const v1::LoadWarning& warning) { return ++counts[warning.name()] > kMostOfAName; });
  std::for_each(warnings.rbegin(), warnings.rend(), [&](v1::LoadWarning& warning) {
    const size_t count = std::exchange(counts[warning.name()], 0);
    if (count > kMostOfAName) StrAppend(warning.mutable_text(), " (and ", count - kMostOfAName, " more like this)");
  });
}

}  // namespace

std::vector<v1::LoadWarning> LoadWarnings(const BuildRequest& request) {
  std::vector<v1::LoadWarning> warnings;
  for (const FunctionSpec& function : request.functions) {
    if (TraitsOf(request.language).runs_on_gpu && LacksStream(function)) warnings.push_back(WithoutStream(function));
    if (HasOnlyResults(function)) warnings.push_back(OnlyResults(function));
  }
  Shorten(warnings);
  return warnings;
}

}  // namespace kernix::build
