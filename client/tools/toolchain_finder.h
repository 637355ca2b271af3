// SPDX-License-Identifier: Apache-2.0
//
// Which compilers this process's user would run. Only where they are: what they are is found out by the daemon.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct ToolchainSearch {
  Language language = Language::kCpp;
  // A host compiler that was asked for, before the environment is looked at: a program, or a folder that has one
  // (nvcc's -ccbin). `host_compiler_from` says in errors who asked.
  std::string host_compiler;
  std::string host_compiler_from;
  std::vector<std::string> site_packages;  // for nvcc as PyPI wheels install it
};

// Host compiler: as asked, $CXX, then c++, g++, clang++ on PATH; a compiler launcher (ccache...) is passed over.
// nvcc: $BRAINEVENT_NVCC_PATH, $CUDA_HOME, $CUDA_PATH, PATH, /usr/local/cuda, then the wheels (which come before PATH
// when $BRAINEVENT_NVCC_PREFER is "pip"). TOOLCHAIN errors list where it looked and what to install. Costs some stat
// calls.
absl::StatusOr<v1::ToolchainPaths> FindToolchain(Env& env, const GetEnv& get_env, const ToolchainSearch& search);

}  // namespace kernix
