// SPDX-License-Identifier: Apache-2.0
//
// The flags that kernix knows, one table per tool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/flags/flag_table.h"

namespace kernix::flags {

extern const Table kCompiler;        // g++ and clang++ when they compile
extern const Table kCompilerAtLink;  // g++ and clang++ when they link
extern const Table kAssembler;       // words after -Wa
extern const Table kLinker;          // words after -Wl and -Xlinker
extern const Table kNvcc;
extern const Table kPtxas;
extern const Table kCudafe;

// Reasons for refusing flags that apply to several tools.
inline constexpr std::string_view kInclude =
    "pass header folders in extra_include_paths, so that their content becomes part of the key";
inline constexpr std::string_view kPreInclude = "write an #include at the top of the source instead";
inline constexpr std::string_view kLinkFlag = "it is a link flag: pass it in extra_ldflags";
inline constexpr std::string_view kFileOfFlags = "write the flags out instead of naming a file";
inline constexpr std::string_view kNamesFile = "this kernixd is shared and reads no file that a flag names";
inline constexpr std::string_view kVerbose = "set verbose instead";

}  // namespace kernix::flags
