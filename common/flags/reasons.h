// SPDX-License-Identifier: Apache-2.0
//
// Why flags of several tools cannot be used.
#pragma once

#include <string_view>

namespace kernix::flags {

inline constexpr std::string_view kInclude =
    "give folders of headers as extra_include_paths, so that their content counts";
inline constexpr std::string_view kPreInclude = "write an #include at the top of the source instead";
inline constexpr std::string_view kLinkFlag = "it is for the link: give it in extra_ldflags";
inline constexpr std::string_view kFileOfFlags = "write the flags of the file out";
inline constexpr std::string_view kNamesFile = "this kernixd is shared and reads no file that a flag names";
inline constexpr std::string_view kVerbose = "ask for verbose instead";

}  // namespace kernix::flags
