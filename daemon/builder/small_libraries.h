// SPDX-License-Identifier: Apache-2.0
//
// The libraries that a compiler names at each link by itself, reduced to the names that the link needs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/exec/blob.h"

namespace kernix::build {

// The folder of the small libraries in the input root.
inline constexpr char kSmallLibraries[] = "kernix-libraries";

struct SmallLibraries {
  std::vector<exec::InputFile> files;  // in that folder
  // Sorted. If the linker does not find one of these, the libraries do not have it either.
  std::vector<std::string> names;
};

// Stubs (link_stub.h) of `libraries` ("libstdc++.so", as compilers name them), which are in `folders`, where the
// compiler looks for them. They have `names`, and the names that the compiler's start files need, if the libraries have
// them, with their versions. A linker that searches that folder first takes them, and finds everything else as usual.
// An error if a library is missing, because the compiler then links an archive, which may need any name; or if one has
// an unusual form: neither a shared library with versions nor a script of glibc's beside one.
absl::StatusOr<SmallLibraries> MakeSmallLibraries(Env& env, const std::vector<std::string>& folders,
                                                  const std::vector<std::string>& libraries,
                                                  const std::vector<std::string>& names);

}  // namespace kernix::build
