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

}  // namespace kernix::flags
