// SPDX-License-Identifier: Apache-2.0
//
// What the commands of kernixctl share. Each command is a file of its own.
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

// The exit codes, as docs/cli.md documents them.
enum ExitCode : int {
  kOk = 0,
  kFailure = 1,      // something that has no code of its own
  kUsage = 2,        // flags that make no sense
  kNoDaemon = 3,     // none runs, or none could be started
  kCompilation = 4,  // the compiler or the linker said no
  kToolchain = 5,    // no usable compiler
  kInterrupted = 130,
};

// Set by the flags before the command.
struct GlobalOptions {
  ClientOptions client;
};

// The command that the command line names, with its flags. Runs it, prints, and returns an ExitCode.
using Subcommand = std::function<int()>;

// Each adds its command to `app`. When the command line names it, it sets `chosen`.
void AddStatus(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddCache(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddCompile(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddMetrics(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);
void AddShutdown(CLI::App& app, const GlobalOptions& options, Subcommand& chosen);

// Those of `cache`.
void AddCacheStats(CLI::App& cache, const GlobalOptions& options, Subcommand& chosen);
void AddCacheList(CLI::App& cache, const GlobalOptions& options, Subcommand& chosen);
void AddCachePurge(CLI::App& cache, const GlobalOptions& options, Subcommand& chosen);

// The whole of main().
int Main(int argc, char** argv);

// Prints `status` and what the compiler said on stderr, and returns the exit code that fits.
int Fail(const absl::Status& status);

// "kernixctl: " and `message` on stderr; kUsage.
int RefuseUsage(std::string_view message);

// Calls `use(client)` with a client of these options; Fail() where there is none.
int WithClient(const GlobalOptions& options, const std::function<int(Client&)>& use);

}  // namespace kernix::ctl
