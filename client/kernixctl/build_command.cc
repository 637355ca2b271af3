// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>

#include "client/kernixctl/batch.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/compile_flags.h"
#include "client/kernixctl/compile_module.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Compiles many files side by side through the daemon, each into a module of its own, as `compile` does. Programs that
load the same files with the same options later find them in the cache. A folder stands for the .cu, .cpp, .cc and .cxx
files in it and below it that have a `// @BE` line. What is for CUDA does not concern C++ files. What fails does not
keep the others from being built.

Exit codes: that of the first file that failed: 3 no daemon, 4 the code does not compile, 5 no usable compiler; 130
interrupted.

Examples:
  kernixctl build kernels --arch sm_90
  kernixctl build kernels/*.cu more_kernels --arch 8.0,9.0 -j 8 --json)";

// The daemon decides how many compilers run; this many loads keep it busy.
constexpr uint32_t kLoadsAtOnce = 32;
constexpr int64_t kMostAtOnce = 256;

struct BuildFlags {
  CompileFlags compile;
  uint32_t at_once = kLoadsAtOnce;
};

std::vector<Option> BuildOptions(BuildFlags& flags) {
  std::vector<Option> options = {
      {"path", &flags.compile.files, "Source files, and folders of them", {.required = true, .names = Names::kFiles}},
      {"-j,--at-once",
       &flags.at_once,
       "Build this many modules at a time (default: 32; the daemon limits how many compilers run)",
       {.least = 1, .most = kMostAtOnce}},
  };
  for (Option& option : OptionsOfEachModule(flags.compile)) options.push_back(std::move(option));
  return options;
}

int Run(const GlobalOptions& options, BuildFlags flags) {
  absl::StatusOr<std::vector<std::string>> files = FilesBelow(flags.compile.files);
  if (!files.ok()) return Fail(files.status());
  flags.compile.files = *std::move(files);
  return WithFlags(options, flags.compile,
                   [&](Client& client) { return BuildAll(client, flags.compile, flags.at_once); });
}

}  // namespace

Command BuildCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<BuildFlags>();
  return {.name = "build",
          .summary = "Compile many source files into the cache, side by side",
          .details = kDetails,
          .options = BuildOptions(*flags),
          .run = [&options, flags] { return Run(options, *flags); }};
}

}  // namespace kernix::ctl
