// SPDX-License-Identifier: Apache-2.0
//
// Finds the compilers that the user of this process would run. It finds only their paths; the daemon examines them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Whether `path` is an executable file, or a link to one.
bool IsProgram(Env& env, const std::string& path);

// The first program `name` on $PATH that `fits`, as an absolute path. Stops there.
std::optional<std::string> FirstOnPath(Env& env, const GetEnv& get_env, const std::string& name,
                                       const std::function<bool(const std::string& program)>& fits);

// Whether `path` is ccache or a similar program, or a link to one: a program that finds and runs a compiler itself.
bool IsCompilerLauncher(Env& env, const std::string& path);

struct ToolchainSearch {
  v1::Language language = v1::LANGUAGE_CPP;
  // A host compiler that was requested, which takes precedence over the environment: a program, or a folder that
  // contains one (nvcc's -ccbin). `host_compiler_from` names the source of the request in errors.
  std::string host_compiler;
  std::string host_compiler_from;
  std::vector<std::string> site_packages;  // folders that may contain nvcc as PyPI wheels install it
};

// The host compiler is the requested one, $CXX, or c++, g++ or clang++ on PATH, in this order; compiler launchers
// (ccache...) are skipped. nvcc is at $BRAINEVENT_NVCC_PATH, $CUDA_HOME, $CUDA_PATH, on PATH, in /usr/local/cuda, or in
// the wheels, in this order; if $BRAINEVENT_NVCC_PREFER is "pip", the wheels come before PATH. TOOLCHAIN errors list
// the searched paths and what to install; see LacksTools(). Costs a few stat calls.
absl::StatusOr<v1::ToolchainPaths> FindToolchain(Env& env, const GetEnv& get_env, const ToolchainSearch& search);

// Whether `status` says that there is no compiler, by FindToolchain() or by a kernixd that was sent none. Not if a
// requested compiler is missing beside others.
bool LacksTools(const absl::Status& status);

// Warnings about $CUDA_HOME and $CUDA_PATH if they have no nvcc.
std::vector<std::string> CudaRootWarnings(Env& env, const GetEnv& get_env);

}  // namespace kernix
