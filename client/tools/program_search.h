// SPDX-License-Identifier: Apache-2.0
//
// Finds programs by name, like a shell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/paths.h"
#include "common/os/env.h"

namespace kernix {

// Whether `path` is an executable file, or a link to one.
bool IsProgram(Env& env, const std::string& path);

// All programs `name` on $PATH, as absolute paths, in the order of $PATH.
std::vector<std::string> ProgramsOnPath(Env& env, const GetEnv& get_env, const std::string& name);

// Whether `path` is ccache or a similar program, or a link to one: a program that finds and runs a compiler itself.
bool IsCompilerLauncher(Env& env, const std::string& path);

}  // namespace kernix
