// SPDX-License-Identifier: Apache-2.0
//
// Reasons for refusing flags that apply to several tools.
#pragma once

#include <string_view>

namespace kernix::flags {

inline constexpr std::string_view kInclude =
    "pass header folders in extra_include_paths, so that their content becomes part of the key";
inline constexpr std::string_view kPreInclude = "write an #include at the top of the source instead";
inline constexpr std::string_view kLinkFlag = "it is a link flag: pass it in extra_ldflags";
inline constexpr std::string_view kFileOfFlags = "write the flags out instead of naming a file";
inline constexpr std::string_view kNamesFile = "this kernixd is shared and reads no file that a flag names";
inline constexpr std::string_view kVerbose = "set verbose instead";

}  // namespace kernix::flags
