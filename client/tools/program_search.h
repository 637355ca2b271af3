// SPDX-License-Identifier: Apache-2.0
//
// Finds programs by name, like a shell.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/base/paths.h"
#include "common/os/env.h"

namespace kernix {

// Whether `path` is an executable file, or a link to one.
bool IsProgram(Env& env, const std::string& path);

// The first program `name` on $PATH that `fits`, as an absolute path. Looks no further.
std::optional<std::string> FirstOnPath(Env& env, const GetEnv& get_env, const std::string& name,
                                       const std::function<bool(const std::string& program)>& fits);

// Whether `path` is ccache or a similar program, or a link to one: a program that finds and runs a compiler itself.
bool IsCompilerLauncher(Env& env, const std::string& path);

}  // namespace kernix
