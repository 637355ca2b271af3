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

// Prints a warning of a load on stderr.
void PrintWarning(std::string_view text);

// Loads the module that is made of `files`, and shows progress and output meanwhile. `callbacks` gets warnings, which
// are printed if it has no function for them, and the inputs. Ctrl-C cancels the load.
absl::StatusOr<std::shared_ptr<Module>> LoadModule(Client& client, const std::vector<std::string>& files,
                                                   const CompileFlags& flags, LoadCallbacks callbacks = {});

// With --build-directory, leaves there what it takes to run the command of a compile error again, and says so.
void SaveFailure(const absl::Status& error, const std::vector<std::string>& files, const CompileFlags& flags);

// Writes what `flags` ask for: the artifact, the build directory, and a report on stdout.
absl::Status Deliver(const Module& module, const std::vector<std::string>& files, const CompileFlags& flags);

}  // namespace kernix::ctl
