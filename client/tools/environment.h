// SPDX-License-Identifier: Apache-2.0
//
// What the user's environment variables ask of a compile. The daemon never sees the environment: each variable that a
// compiler (or brainevent) would have read becomes a field of the request, or a warning that names it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "kernix/load.h"

namespace kernix {

struct CompilerEnvironment {
  std::vector<std::string> include_paths;         // CPATH: as if given by -I, after those of the command line
  std::vector<std::string> system_include_paths;  // CPLUS_INCLUDE_PATH: as if given by -isystem
  std::vector<std::string> library_paths;         // LIBRARY_PATH: as if given by -L
  std::vector<std::string> flags_before;          // NVCC_PREPEND_FLAGS
  std::vector<std::string> flags_after;           // NVCC_APPEND_FLAGS
  std::string host_compiler;                      // NVCC_CCBIN
  std::string compute_capability;                 // BRAINEVENT_COMPUTE_CAPABILITIES
  std::vector<std::string> warnings;              // about variables that have no effect here
};

// CFLAGS, CXXFLAGS and LDFLAGS are make's and are not read, as no compiler reads them. INVALID_REQUEST when a
// variable's value cannot be read. BRAINEVENT_NVCC_PATH, BRAINEVENT_NVCC_PREFER, CUDA_HOME, CUDA_PATH and CXX are
// toolchain_finder's.
absl::StatusOr<CompilerEnvironment> ReadCompilerEnvironment(const GetEnv& get_env, Language language);

// Warnings about those of `variables` ("NAME=value") that begin with BRAINEVENT_ and mean nothing to kernix: misspelt,
// or of another version of brainevent.
std::vector<std::string> UnknownVariableWarnings(const std::vector<std::string>& variables);

// The environment of this process: "NAME=value". No other thread may change it meanwhile.
std::vector<std::string> ProcessVariables();

// Those of `variables` ("NAME=value") that a load depends on, one after another: equal texts mean that none of them
// changed. They say where tools and headers are, which GPU is the first, which daemon and store are used.
std::string VariablesOfLoads(const std::vector<std::string>& variables);
// Those of this process. No other thread may change them meanwhile.
std::string VariablesOfLoads();

// Answers from `variables` as ProcessGetEnv() does from the process': a variable that is empty is not set.
GetEnv GetEnvOf(std::vector<std::string> variables);

// True the first time that this process asks about `warning`: a variable that is set once need not be mentioned at each
// load.
bool IsFirstWarning(const std::string& warning);

}  // namespace kernix
