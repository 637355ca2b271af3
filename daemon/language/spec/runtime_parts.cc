// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/spec/runtime_parts.h"

#include "common/base/strings.h"

namespace kernix::language {
namespace {

constexpr RuntimePartRow kTable[] = {
    {RuntimePart::kTraits, "traits", "_GLIBCXX_TYPE_TRAITS", /*guarded=*/false},
    {RuntimePart::kLimits, "limits", "_GLIBCXX_NUMERIC_LIMITS", /*guarded=*/false},
    {RuntimePart::kAlgorithms, "algorithms",
     "_STL_ALGOBASE_H _STL_ITERATOR_H _STL_ITERATOR_BASE_TYPES_H _STL_ITERATOR_BASE_FUNCS_H _PTR_TRAITS_H "
     "_FUNCTEXCEPT_H _EXCEPTION_DEFINES_H _GLIBCXX_PREDEFINED_OPS_H _GLIBCXX_DEBUG_MACRO_SWITCH_H "
     "_GLIBCXX_DEBUG_ASSERTIONS_H",
     /*guarded=*/false},
    {RuntimePart::kVectors, "vectors", "__VECTOR_FUNCTIONS_H__"},
    {RuntimePart::kChannels, "channels", "__CHANNEL_DESCRIPTOR_H__"},
    {RuntimePart::kMaths, "maths", "__MATH_FUNCTIONS_H__ __DEVICE_FUNCTIONS_HPP__"},
    {RuntimePart::kAtomics, "atomics",
     "__DEVICE_ATOMIC_FUNCTIONS_H__ __SM_20_ATOMIC_FUNCTIONS_H__ __SM_32_ATOMIC_FUNCTIONS_H__ "
     "__SM_35_ATOMIC_FUNCTIONS_H__ __SM_60_ATOMIC_FUNCTIONS_H__"},
    {RuntimePart::kIntrinsics, "intrinsics",
     "__SM_20_INTRINSICS_H__ __SM_30_INTRINSICS_H__ __SM_61_INTRINSICS_H__ "
     "__SM_70_RT_H__ __SM_80_RT_H__ __SM_90_RT_H__ __SM_100_RT_H__"},
    {RuntimePart::kLoads, "loads", "__SM_32_INTRINSICS_H__ __SM_35_INTRINSICS_H__"},
    {RuntimePart::kTextures, "textures", "__TEXTURE_INDIRECT_FUNCTIONS_H__ __SURFACE_INDIRECT_FUNCTIONS_H__"},
    {RuntimePart::kTemplates, "templates",
     "__CUDA_RUNTIME_H__ _GLIBCXX_UTILITY _GLIBCXX_UTILITY_H _STL_RELOPS_H _STL_PAIR_H _MOVE_H "
     "_EXT_NUMERIC_TRAITS _CONCEPT_CHECK_H _COMPARE",
     /*guarded=*/false},
};

}  // namespace

absl::Span<const RuntimePartRow> RuntimePartTable() { return kTable; }

RuntimeParts AllRuntimeParts() {
  RuntimeParts all;
  for (const RuntimePartRow& row : kTable) all = all | row.part;
  return all;
}

std::string PartNames(RuntimeParts parts) {
  std::string names;
  for (const RuntimePartRow& row : kTable) {
    if (parts.Has(row.part)) StrAppend(&names, names.empty() ? "" : ", ", row.name);
  }
  return names;
}

}  // namespace kernix::language
