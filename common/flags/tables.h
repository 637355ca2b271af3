// SPDX-License-Identifier: Apache-2.0
//
// The flags that kernix knows: a table for each tool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/flags/flag_table.h"

namespace kernix::flags {

extern const Table kCompiler;        // g++ and clang++
extern const Table kCompilerAtLink;  // the same, when they link
extern const Table kAssembler;       // words behind -Wa
extern const Table kLinker;          // words behind -Wl and -Xlinker
extern const Table kNvcc;
extern const Table kPtxas;
extern const Table kCudafe;

}  // namespace kernix::flags
