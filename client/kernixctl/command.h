// SPDX-License-Identifier: Apache-2.0
//
// Code that kernixctl's commands share. Each command has its own file.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernix/client.h"

namespace kernix::ctl {

// The exit codes, which docs/cli.md documents.
enum ExitCode : int {
  kOk = 0,
  kFailure = 1,      // any failure without its own code
  kUsage = 2,        // invalid flags
  kNoDaemon = 3,     // no daemon is running, or none could be started
  kCompilation = 4,  // the compiler or the linker failed
  kToolchain = 5,    // no usable compiler
  kInterrupted = 130,
};

// Set by the flags before the command.
struct GlobalOptions {
  ClientOptions client;
};

// The command that the command line names, with its flags. Runs it, prints its output, and returns an ExitCode.
using Subcommand = std::function<int()>;

// Each function adds its command to `app`. If the command line names the command, it sets `chosen`.
void AddStatus(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddCache(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddCompile(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddDoctor(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddMetrics(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddReload(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddShutdown(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);

// The commands of `cache`.
void AddCacheStats(CLI::App& cache, const GlobalOptions& options, Subcommand& chosen);
void AddCacheList(CLI::App& cache, const GlobalOptions& options, Subcommand& chosen);
void AddCacheShow(CLI::App& cache, const GlobalOptions& options, Subcommand& chosen);
void AddCachePurge(CLI::App& cache, const GlobalOptions& options, Subcommand& chosen);

// Adds --site-packages, which comes from $KERNIX_SITE_PACKAGES if it is not given.
void AddSitePackages(CLI::App& command, std::vector<std::string>& site_packages);

// The whole of main().
int Main(int argc, char** argv);

// Prints `status` and the compiler's output on stderr, and returns the matching exit code.
int Fail(const absl::Status& status);

// Prints "kernixctl: " and `message` on stderr, and returns kUsage.
int RefuseUsage(std::string_view message);

// Calls `use(client)` with a client for these options, or Fail() if there is none.
int WithClient(const GlobalOptions& options, const std::function<int(Client&)>& use);

}  // namespace kernix::ctl
