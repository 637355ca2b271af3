// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "client/connection/daemon_process.h"
#include "client/kernixctl/command.h"
#include "client/tools/absolute_path.h"
#include "client/tools/toolchain_finder.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Writes down the compilers that loads find here, and the digests of their headers, for nodes without compilers: with the
file as the setting toolchain_description, the kernixd there takes what nodes with these compilers have built. Without
nvcc, the description serves C++ only. CXX chooses the C++ compiler, as for loads.

Examples:
  kernixctl describe -o fleet.toolchain
  CXX=g++-12 kernixctl describe -o fleet.toolchain)";

struct DescribeFlags {
  std::string output;
  std::vector<std::string> site_packages;
};

// For CUDA and C++ if there is an nvcc.
absl::StatusOr<v1::ToolchainPaths> FindTools(const std::vector<std::string>& site_packages) {
  ToolchainSearch search{.language = v1::LANGUAGE_CUDA, .site_packages = site_packages};
  absl::StatusOr<v1::ToolchainPaths> found = FindToolchain(Env::Posix(), ProcessGetEnv, search);
  if (!LacksTools(found.status())) return found;
  search.language = v1::LANGUAGE_CPP;
  return FindToolchain(Env::Posix(), ProcessGetEnv, search);
}

std::vector<std::string> CommandFor(const std::string& kernixd, const std::string& output,
                                    const v1::ToolchainPaths& tools) {
  std::vector<std::string> command = {kernixd, "--describe-toolchain", AbsolutePath(output), "--host-compiler",
                                      tools.host_compiler()};
  if (!tools.nvcc().empty()) command.insert(command.end(), {"--nvcc", tools.nvcc()});
  for (const std::string& folder : tools.cuda_include_directories()) {
    command.insert(command.end(), {"--cuda-include-directory", folder});
  }
  for (const std::string& folder : tools.cuda_library_directories()) {
    command.insert(command.end(), {"--cuda-library-directory", folder});
  }
  return command;
}

// Becomes that program. Returns if it cannot be started.
absl::Status Become(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  return MakeError(v1::ErrorDetail::UNREACHABLE, StrCat("cannot run ", command[0], ": ", std::strerror(errno)));
}

// Only kernixd looks into compilers.
absl::Status Describe(const ClientOptions& options, const DescribeFlags& flags) {
  KERNIX_ASSIGN_OR_RETURN(const v1::ToolchainPaths tools, FindTools(flags.site_packages));
  KERNIX_ASSIGN_OR_RETURN(const std::string kernixd, FindKernixd(ClientEnvironment(), options.kernixd));
  return Become(CommandFor(kernixd, flags.output, tools));
}

}  // namespace

Command DescribeCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<DescribeFlags>();
  return {.name = "describe",
          .summary = "Describe this machine's compilers for nodes without",
          .details = kDetails,
          .options = {{"-o,--output",
                       &flags->output,
                       "Write the description to this file",
                       {.required = true, .names = Names::kFiles}},
                      SitePackages(flags->site_packages)},
          .run = [&options, flags] { return Fail(Describe(options, *flags)); }};
}

}  // namespace kernix::ctl
