// SPDX-License-Identifier: Apache-2.0
//
// CUDA's shared libraries (cuBLAS, cuFFT, ...) that an artifact was linked with. An artifact names them without a
// folder, so they are opened from the client's own environment first: the ones that JAX uses too.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "common/os/env.h"

namespace kernix {

// Where they may lie, in search order: the wheels in `site_packages`, $CUDA_HOME, $CUDA_PATH, /usr/local/cuda. Only
// folders that are there.
std::vector<std::string> CudaLibraryDirectories(Env& env, const GetEnv& get_env,
                                                const std::vector<std::string>& site_packages);

// The shared libraries that `path` asks the loader for, in order. Errors of ElfFile::Open(), kDataLoss.
absl::StatusOr<std::vector<std::string>> NeededLibraries(const std::string& path);

// Opens, for the life of the process, each library that `path` needs and that lies in one of `directories`, and before
// it what it needs itself. Others are the loader's business. A LOAD error when one does not open.
absl::Status OpenNeededFrom(const std::vector<std::string>& directories, const std::string& path);

}  // namespace kernix
