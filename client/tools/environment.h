// SPDX-License-Identifier: Apache-2.0
//
// The effects of the user's environment variables on a compile. The daemon never sees the environment: each variable
// that a compiler (or brainevent) would read becomes a field of the request, or a warning that names it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/load_warning.h"
#include "common/base/paths.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct CompilerEnvironment {
  std::vector<std::string> include_paths;         // CPATH: like -I, after the paths of the command line
  std::vector<std::string> system_include_paths;  // CPLUS_INCLUDE_PATH: like -isystem
  std::vector<std::string> library_paths;         // LIBRARY_PATH: like -L
  std::vector<std::string> flags_before;          // NVCC_PREPEND_FLAGS
  std::vector<std::string> flags_after;           // NVCC_APPEND_FLAGS
  std::string host_compiler;                      // NVCC_CCBIN
  std::string compute_capability;                 // BRAINEVENT_COMPUTE_CAPABILITIES
  std::vector<std::string> warnings;              // about variables that have no effect here
};

// Does not read CFLAGS, CXXFLAGS and LDFLAGS, which belong to make; compilers do not read them either. toolchain_finder
// reads BRAINEVENT_NVCC_PATH, BRAINEVENT_NVCC_PREFER, CUDA_HOME, CUDA_PATH and CXX. Returns INVALID_REQUEST if the
// value of a variable cannot be parsed.
absl::StatusOr<CompilerEnvironment> ReadCompilerEnvironment(const GetEnv& get_env, v1::Language language);

// "NAME=value" of those variables without which a compiler may not run, as far as they are set.
std::vector<std::string> VariablesOfCompilers(const GetEnv& get_env);

// The names of the variables that a client-started daemon reads as its settings.
std::vector<std::string> DaemonVariables();

// Warnings about those of `variables` ("NAME=value") that begin with BRAINEVENT_ or KERNIX_ and that kernix does not
// know, because they are misspelt or belong to another version.
std::vector<std::string> UnknownVariableWarnings(const std::vector<std::string>& variables);

// The environment of this process: "NAME=value". No other thread may change it during the call.
std::vector<std::string> ProcessVariables();

// If `path` is relative, appends it to this process's working folder; otherwise returns it unchanged. Links and ".."
// stay, because only the kernel can resolve them correctly.
std::string AbsolutePath(std::string_view path);

// The `variables` ("NAME=value") that a load depends on, in one text: if two texts are equal, none of them has changed.
// They decide the tools and headers, the first GPU, the daemon and the store.
std::string VariablesOfLoads(const std::vector<std::string>& variables);
// The same for this process. No other thread may change its variables during the call.
std::string VariablesOfLoads();

// Reads from `variables` as ProcessGetEnv() does from the process's environment: an empty variable is absent.
GetEnv GetEnvOf(std::vector<std::string> variables);

// Returns true the first time that this process asks about `warning`, so that a load does not repeat the warnings of
// earlier loads.
bool IsFirstWarning(const std::string& warning);

// Splits text like a shell splits a command line: at white space; '...', "..." and backslashes work as in sh. Expands
// nothing. Returns kInvalidArgument if a quote is not closed.
absl::StatusOr<std::vector<std::string>> SplitShellWords(std::string_view text);

// Which of a load's warnings the user wants to see: $KERNIX_WARNINGS is a list of no-<name>, separated by commas, or
// "none".
struct LoadWarning {
  std::string_view name;  // of kernix::warning
  std::string text;
};

// The text of a warning with how to switch it off, or nullopt if the user has done so.
std::optional<std::string> ShownWarning(const GetEnv& get_env, std::string_view name, std::string_view text);

// Warnings about $KERNIX_WARNINGS itself.
std::vector<std::string> WarningsAboutSwitches(const GetEnv& get_env);

}  // namespace kernix
