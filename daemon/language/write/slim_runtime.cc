// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/write/slim_runtime.h"

#include "common/base/strings.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

// What the toolkit's cuda_runtime.h includes, in its order. Include guards leave out what is not wanted.
constexpr std::string_view kHeaders =
    "builtin_types.h library_types.h channel_descriptor.h cuda_runtime_api.h driver_functions.h crt/host_defines.h "
    "vector_functions.h crt/common_functions.h crt/device_functions.h device_launch_parameters.h";

std::vector<std::string_view> GuardsLeftOut(RuntimeParts parts) {
  std::vector<std::string_view> guards = Words(kNeverReadGuards);
  for (const RuntimePartRow& row : RuntimePartTable()) {
    if (!row.guarded || parts.Has(row.part)) continue;
    for (std::string_view guard : Words(row.guards)) guards.push_back(guard);
  }
  return guards;
}

void IncludeNext(std::string_view header, std::string& out) { StrAppend(&out, "#include_next <", header, ">\n"); }

}  // namespace

std::string SlimRuntimeHeader(RuntimeParts parts) {
  const std::vector<std::string_view> guards = GuardsLeftOut(parts);
  std::string out =
      "#ifndef KERNIX_SLIM_RUNTIME\n#define KERNIX_SLIM_RUNTIME\n#pragma GCC system_header\n"
      "#define __CUDA_RUNTIME_H__\n#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__\n";
  for (std::string_view guard : guards) StrAppend(&out, "#define ", guard, "\n");
  IncludeNext("crt/host_config.h", out);
  out += "#include <initializer_list>\n";  // short, and used without its name
  if (parts.Has(RuntimePart::kTraits)) out += "#include <type_traits>\n";
  if (parts.Has(RuntimePart::kLimits)) out += "#include <limits>\n";
  if (parts.Has(RuntimePart::kAlgorithms)) out += "#include <bits/stl_algobase.h>\n";
  for (std::string_view header : Words(kHeaders)) IncludeNext(header, out);
  out += "#undef __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__\n";
  if (parts.Has(RuntimePart::kTemplates)) {
    out += "#undef __CUDA_RUNTIME_H__\n";
    IncludeNext("cuda_runtime.h", out);
  }
  for (std::string_view guard : guards) StrAppend(&out, "#undef ", guard, "\n");
  return out + "#endif\n";
}

std::vector<std::string> HostRuntimeDefinitions(RuntimeParts parts) {
  if (parts.Has(RuntimePart::kMaths)) return {};
  return {"-D__MATH_FUNCTIONS_H__"};
}

}  // namespace kernix::language
