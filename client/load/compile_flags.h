// SPDX-License-Identifier: Apache-2.0
//
// Sorts the user's compiler flags by how kernix handles them. For example, the client sends the content of header
// folders to the daemon, not their paths.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/flags/flag_table.h"
#include "common/os/env.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct SortedFlags {
  std::vector<std::string> compile;               // the remaining flags, in order
  std::vector<std::string> link;                  // -L, -l, -Wl, and -Xlinker
  std::vector<std::string> include_paths;         // -I (and -iquote)
  std::vector<std::string> system_include_paths;  // -isystem: searched after all -I
  std::vector<std::string> last_include_paths;    // -idirafter
  std::string host_compiler;                      // nvcc's -ccbin
};

// Returns INVALID_REQUEST if a flag lacks its value, or holds a second flag. The daemon checks whether a flag is
// allowed.
absl::StatusOr<SortedFlags> SortFlags(v1::Language language, const std::vector<std::string>& flags);

// Whether one of `flags` asks for warnings: -Wall, -Xcompiler=-Wextra.
bool AsksForWarnings(const std::vector<std::string>& flags);

// All that the host compiler gets, when it compiles and when it links, of flags as sent to the daemon.
std::vector<flags::Flag> HostFlags(v1::Language language, const std::vector<std::string>& compile_flags,
                                   const std::vector<std::string>& link_flags);

// Files outside of the sources that flags name.
struct FlagFiles {
  std::vector<std::string> files;  // objects, libraries, plugins; only existing files, absolute
  std::set<std::string> folders;   // of -L, and where linkers look by themselves
};

// The files that `compile_flags` and `link_flags` (as sent to the daemon) name. If a library is named without its
// folder, every file with that name in a -L folder is included.
FlagFiles FindFlagFiles(Env& env, v1::Language language, const std::vector<std::string>& compile_flags,
                        const std::vector<std::string>& link_flags);

// `error`, with advice if the compiler failed on sources that are CUDA in a load of C++: its message about `__global__`
// does not help.
absl::Status WithCudaAdvice(const v1::LoadRequest& request, const absl::Status& error);

}  // namespace kernix
