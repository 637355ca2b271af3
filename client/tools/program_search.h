// SPDX-License-Identifier: Apache-2.0
//
// Finding programs by name, as a shell does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/paths.h"
#include "common/os/env.h"

namespace kernix {

// True for a file, or a link to one, that may be run.
bool IsProgram(Env& env, const std::string& path);

// All programs `name` on $PATH, absolute, in its order.
std::vector<std::string> ProgramsOnPath(Env& env, const GetEnv& get_env, const std::string& name);

// True when `path` is ccache or the like, or a link to it: a program that runs a compiler which it finds by itself.
bool IsCompilerLauncher(Env& env, const std::string& path);

}  // namespace kernix
