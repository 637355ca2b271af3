// SPDX-License-Identifier: Apache-2.0
//
// Many files, each compiled into a module of its own, side by side.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kernixctl/compile_flags.h"
#include "kernix/client.h"

namespace kernix::ctl {

// The source files that `paths` stand for: a file for itself, a folder for the sources in it and below it that export a
// function by a `// @BE` line. INVALID_REQUEST names a folder without such files.
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::vector<std::string>& paths);

// Loads each of `flags.files`, `at_once` at a time, and prints what it gave, or the error, as soon as it is there; at
// the end, a report on stderr. A terminal shows one progress line for all. Ctrl-C cancels what is left. Returns kOk, or
// the exit code of the first file that failed.
int BuildAll(Client& client, const CompileFlags& flags, size_t at_once);

}  // namespace kernix::ctl
