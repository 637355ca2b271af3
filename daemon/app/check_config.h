// SPDX-License-Identifier: Apache-2.0
//
// kernixd --check-config.
#pragma once

#include <string>
#include <vector>

#include "common/os/env.h"
#include "daemon/app/options.h"

namespace kernix::server {

// What is wrong with options that are consistent by themselves: groups that do not exist, toolchains that do not work.
// Each with its place in the file. Runs the compilers' queries.
std::vector<std::string> ProblemsHere(Env& env, const ServerOptions& options);

// Prints what ProblemsHere() finds on stderr, or on stdout that the configuration is good. Returns a KernixdExit.
int CheckConfig(Env& env, const ServerOptions& options);

}  // namespace kernix::server
