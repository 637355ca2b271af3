// SPDX-License-Identifier: Apache-2.0
//
// Reads the files that a compiler lists with -MD, in Makefile syntax.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix::build {

// The prerequisites of the first rule, in order, without duplicates.
std::vector<std::string> ParseDependencyFile(std::string_view text);

// The files that a preprocessed text names in its line markers (`# 1 "unit.cu"`), in order, without duplicates,
// "<built-in>" and the like, and the working folder (`# 1 "/proc/self/cwd//"`, with -g).
std::vector<std::string> FilesOfLineMarkers(std::string_view preprocessed);

// One rule for `target`. ParseDependencyFile() gives `paths` back.
std::string MakeDependencyFile(std::string_view target, const std::vector<std::string>& paths);

// The prerequisites outside the action's root. These are the absolute paths, since commands name their own inputs by
// relative paths. Spelled as the compiler wrote them, sorted, without duplicates.
std::vector<std::string> HeadersOutsideRoot(std::string_view dependency_file);

}  // namespace kernix::build
