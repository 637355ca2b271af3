// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>
#include <vector>

#include "client/kernixctl/command.h"
#include "client/kernixctl/compile_flags.h"
#include "client/kernixctl/compile_module.h"
#include "client/kernixctl/interrupt.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Compiles each file through the daemon, or finds it in the cache, and opens the result to check that it
loads. Without --function, the `// @BE name [tokens]` lines of a file say what it exports. With --name or
--separate, all files form one module: one translation unit together, in order, or one each.

Exit codes: 3 no daemon, 4 the code does not compile, 5 no usable compiler, 6 not in the cache, 130 interrupted.

Examples:
  kernixctl compile vector_add.cu --arch sm_90
  kernixctl compile vector_add.cu --arch 8.6,9.0 -o vector_add.so
  kernixctl compile add_one.cpp --function add_one=arg,ret -D N=4 --flag=-fopenmp
  kernixctl compile kernels/*.cu --arch sm_90 --json
  kernixctl compile vector_add.cu --arch sm_90 --print ptx
  kernixctl compile vector_add.cu --arch sm_90 --keep --build-directory out
  kernixctl compile part1.cu part2.cu helpers.cpp --separate --name parts --flag=-rdc=true)";

absl::Status CompileModule(Client& client, const std::vector<std::string>& files, const CompileFlags& flags) {
  const absl::StatusOr<std::shared_ptr<Module>> module = LoadModule(client, files, flags);
  if (module.ok()) return Deliver(**module, files, flags);
  SaveFailure(module.status(), files, flags);
  return module.status();
}

// Continues after a module that fails to compile. The first failure decides the exit code.
int CompileAll(Client& client, const CompileFlags& flags) {
  int result = kOk;
  for (const std::vector<std::string>& files : Modules(flags)) {
    if (Interrupted()) return kInterrupted;
    const absl::Status status = CompileModule(client, files, flags);
    if (status.ok()) continue;
    const int code = Fail(status);
    if (result == kOk) result = code;
    if (code == kNoDaemon || code == kInterrupted) break;
  }
  if (result == kCompilation && flags.build_directory.empty()) {
    std::cerr << "kernixctl: -v shows the commands; --build-directory DIR keeps one that failed, to run it again\n";
  }
  return result;
}

}  // namespace

Command CompileCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<CompileFlags>();
  return {.name = "compile",
          .summary = "Compile source files into the cache",
          .details = kDetails,
          .options = CompileOptions(*flags),
          .run = [&options, flags] {
            return WithFlags(options, *flags, [&flags](Client& client) { return CompileAll(client, *flags); });
          }};
}

}  // namespace kernix::ctl
