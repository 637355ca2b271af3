// SPDX-License-Identifier: Apache-2.0
//
// Libraries that users are given: the output of `kernixctl compile -o`, and <name>.so of a build directory. Each is the
// artifact with one section more, ".kernix.module", which has what LoadLibrary() must know besides. Its content is an
// internal::LibraryFile. The store's artifacts lack it, because they serve modules of any name.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

// The library of a module. That of a module which MakeModule() has not made is its artifact.
absl::StatusOr<std::string> LibraryFileOf(const Module& module);

}  // namespace kernix
