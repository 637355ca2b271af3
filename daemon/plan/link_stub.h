// SPDX-License-Identifier: Apache-2.0
//
// A shared library for the linker alone: it has names and versions, but no code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/elf_image.h"

namespace kernix::build {

// A library of that name that defines those of `imports` that come from it. An object linked with it has the loader
// find the real library and its versions. No program can load it.
std::string LinkStub(std::string_view library, const std::vector<ElfImage::Import>& imports);

}  // namespace kernix::build
