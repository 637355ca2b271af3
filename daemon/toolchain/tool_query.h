// SPDX-License-Identifier: Apache-2.0
//
// Asking tools about themselves, and finding what they say.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::toolchain {

// What a tool at `program` gets as its environment, here and in builds: no locale, nothing of a client's, and PATH with
// the folder of the program and the system's.
std::map<std::string, std::string> ToolEnvironment(const std::string& program);

// A quick question to a tool, to be run as it is.
ProcessSpec ToolQuery(const std::vector<std::string>& argv);

// What the command prints. TOOLCHAIN, with that text, when it cannot be started, fails, or does not end in a minute.
absl::StatusOr<std::string> AskTool(Env& env, const std::vector<std::string>& argv);

// The lines of `text`, ends of line removed.
std::vector<std::string> SplitLines(std::string_view text);

// What follows `prefix` in the first line that starts with it. Nothing when there is none.
std::optional<std::string> LineAfter(std::string_view text, std::string_view prefix);

// The parts of a line that is written as for a shell: split at spaces, but for those in double quotes, which are
// removed.
std::vector<std::string> SplitCommand(std::string_view line);

// `name` in the first of `folders` that has it as a file, normalised. Nothing when none does.
std::optional<std::string> FindFile(Env& env, const std::vector<std::string>& folders, const std::string& name);

// Those that exist, with links resolved, in order, no doubles.
std::vector<std::string> ExistingFolders(Env& env, const std::vector<std::string>& folders);

}  // namespace kernix::toolchain
