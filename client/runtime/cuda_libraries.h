// SPDX-License-Identifier: Apache-2.0
//
// Opens CUDA's shared libraries (cuBLAS, cuFFT, ...) that an artifact was linked with. An artifact names them without a
// folder, so the client first opens the libraries of its own environment, which JAX uses, too.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "common/os/env.h"

namespace kernix {

// The folders that may contain them, in search order: the wheels in `site_packages`, $CUDA_HOME, $CUDA_PATH,
// /usr/local/cuda. Only existing folders.
std::vector<std::string> CudaLibraryDirectories(Env& env, const GetEnv& get_env,
                                                const std::vector<std::string>& site_packages);

// Opens each library of `needed` that is in one of `directories`, after the libraries that it needs itself. They stay
// open until the process ends. The loader finds all other libraries. Returns a LOAD error if a library cannot be
// opened.
absl::Status OpenNeeded(const std::vector<std::string>& directories, const std::vector<std::string>& needed);

}  // namespace kernix
