// SPDX-License-Identifier: Apache-2.0
//
// Parts of CUDA's runtime header in words, for expectations of tests.
#pragma once

#include <string>
#include <string_view>

#include "common/base/strings.h"
#include "daemon/language/read/runtime_names.h"

namespace kernix::language {

// "atomics, maths"; empty for none.
inline std::string PartNames(RuntimeParts parts) {
  static constexpr std::string_view kNames[] = {"traits",  "limits",     "algorithms", "vectors",  "channels", "maths",
                                                "atomics", "intrinsics", "loads",      "textures", "templates"};
  std::string names;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (parts.Has(static_cast<RuntimePart>(i))) StrAppend(&names, names.empty() ? "" : ", ", kNames[i]);
  }
  return names;
}

// What a choice of the header is: "full", or the parts to add to the stand-in.
inline std::string Said(const RuntimeChoice& choice) { return choice.full ? "full" : PartNames(choice.parts); }

}  // namespace kernix::language
