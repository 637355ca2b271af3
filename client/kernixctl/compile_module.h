// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kernixctl/compile_flags.h"
#include "kernix/client.h"
#include "kernix/load.h"

namespace kernix::ctl {

// Calls `use(client)` with a client for these options, or refuses flags that contradict each other. Catches Ctrl-C.
int WithFlags(const GlobalOptions& options, const CompileFlags& flags, const std::function<int(Client&)>& use);

// Loads the module that is made of `files`, and shows progress and warnings meanwhile. Ctrl-C cancels the load.
absl::StatusOr<std::shared_ptr<Module>> LoadModule(Client& client, const std::vector<std::string>& files,
                                                   const CompileFlags& flags, LoadCallbacks::Inputs inputs = nullptr);

// Writes what `flags` ask for: the artifact, the build directory, and a report on stdout.
absl::Status Deliver(const Module& module, const std::vector<std::string>& files, const CompileFlags& flags);

}  // namespace kernix::ctl
