// SPDX-License-Identifier: Apache-2.0
//
// Reads the files that a compiler lists with -MD, and an assembler with --MD, in Makefile syntax.
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

// The prerequisites outside the action's root, since commands name their own inputs by relative paths: the absolute
// paths, and relative ones that leave the root, or a folder behind a link in it, through ".."; also names
// that may be two, of which the second is such a path. Spelled as the tool wrote them, sorted, without duplicates.
std::vector<std::string> FilesOutsideRoot(std::string_view dependency_file);

}  // namespace kernix::build
