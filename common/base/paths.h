// SPDX-License-Identifier: Apache-2.0
//
// Paths as text, and access to environment variables that hold them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kernix {

// Reads an environment variable. Callers inject it, so that tests need not change the process's environment.
using GetEnv = std::function<std::optional<std::string>(const std::string&)>;

// Reads the process's environment. An empty variable is absent.
std::optional<std::string> ProcessGetEnv(const std::string& name);

std::string JoinPath(std::string_view a, std::string_view b);
std::string Basename(std::string_view path);
std::string Dirname(std::string_view path);

// Normalises without looking at the file system: collapses "//", "." and "..". Keeps a leading "/".
std::string NormalizePath(std::string_view path);

// Whether `path` leads into `folder`, by the texts of the two alone: they have no "." or "..", and no "/" at the end. A
// folder does not lie below itself.
bool IsBelow(std::string_view path, std::string_view folder);

// The longest socket path that bind(2) accepts, without the terminating NUL.
inline constexpr size_t kMaxSocketPath = 107;

}  // namespace kernix
