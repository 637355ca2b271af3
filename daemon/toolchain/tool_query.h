// SPDX-License-Identifier: Apache-2.0
//
// Queries tools about themselves, several side by side, and parses their answers.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"

namespace kernix::toolchain {

// Work of short life on several processors.

// Runs all `tasks`, a few at a time, and returns when the last one has ended. Throws what a task has thrown.
void RunSideBySide(const std::vector<std::function<void()>>& tasks);

using Variables = std::map<std::string, std::string>;

// The environment of a tool at `program`, in queries and in builds: no locale, nothing from a client but `needed`, and
// a PATH with the program's folder and the system's folders.
Variables ToolEnvironment(const std::string& program, const Variables& needed = {});

// A quick query to a tool, ready to run. Enclosed, it sees the installations of all tools that `argv` names, and the
// `folders`.
ProcessSpec ToolQuery(Env& env, const std::vector<std::string>& argv, const Variables& needed = {},
                      const std::vector<std::string>& folders = {});

// The output of the command. TOOLCHAIN, with that output, if the command cannot be started, fails, or does not end
// within a minute. `folders`: as for ToolQuery().
absl::StatusOr<std::string> AskTool(Env& env, const std::vector<std::string>& argv, const Variables& needed = {},
                                    const std::vector<std::string>& folders = {});

// Whether `status` says that a tool was started, but did not work.
bool DoesNotWork(const absl::Status& status);

// The lines of `text`, without line ends.
std::vector<std::string> SplitLines(std::string_view text);

// The rest of the first line that starts with `prefix`. nullopt if there is none.
std::optional<std::string> LineAfter(std::string_view text, std::string_view prefix);

// Splits a line that is quoted as for a shell: at spaces outside double quotes. Removes the quotes.
std::vector<std::string> SplitCommand(std::string_view line);

// The normalised path of `name` in the first of `folders` that has it as a file. nullopt if none has.
std::optional<std::string> FindFile(Env& env, const std::vector<std::string>& folders, const std::string& name);

// The folders that exist, with links resolved, in order, without duplicates.
std::vector<std::string> ExistingFolders(Env& env, const std::vector<std::string>& folders);

}  // namespace kernix::toolchain
