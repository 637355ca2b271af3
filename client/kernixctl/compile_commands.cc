// SPDX-License-Identifier: Apache-2.0
//
// The commands that compile: `kernixctl compile`, `build` and `watch`.
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/kernixctl/batch.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/compile_module.h"
#include "client/kernixctl/progress_line.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix::ctl {
namespace {

// --- Compile

constexpr char kCompileDetails[] =
    R"(Compiles each file through the daemon, or finds it in the cache, and opens the result to check that it
loads. By default, exports the functions of the `// @BE name [tokens]` lines. With --name or --separate, all files
form one module: one translation unit together, in order, or one each.

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
    std::cerr << "kernixctl: -v shows the commands; --build-directory DIR keeps a failed one, to run it again\n";
  }
  return result;
}

// --- Build

constexpr char kBuildDetails[] =
    R"(Compiles many files side by side through the daemon, each into a module of its own, as `compile` does. Programs that
load the same files with the same options later find them in the cache. A folder stands for the .cu, .cpp, .cc and .cxx
files in it and below it that have a `// @BE` line. Options for CUDA do not affect C++ files. If a file fails, the
others are still built.

Exit codes: the first failed file's: 3 no daemon, 4 the code does not compile, 5 no usable compiler, 6 not in
the cache; 130 interrupted.

Examples:
  kernixctl build kernels --arch sm_90
  kernixctl build kernels/*.cu more_kernels --arch 8.0,9.0 -j 8 --json)";

absl::StatusOr<BatchResult> Build(Client& client, const CompileFlags& flags, const std::string& file,
                                  const LoadCallbacks& callbacks) {
  KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<Module> module,
                          LoadAlone(client, file, flags, flags.load.environment, callbacks));
  const CompiledFiles compiled{{file}, *module, module->path()};
  return BatchResult{flags.json ? SummaryJson(compiled) : SummaryLine(compiled), InWords(module->origin())};
}

int BuildAll(Client& client, const CompileFlags& flags, size_t at_once) {
  std::vector<BatchItem> items;
  for (const std::string& file : flags.files) {
    items.push_back({file, [&client, &flags, &file](const LoadCallbacks& callbacks) {
                       return Build(client, flags, file, callbacks);
                     }});
  }
  return RunBatch(items, at_once, flags.load.verbose);
}

struct BuildFlags {
  CompileFlags compile;
  uint32_t at_once = kLoadsAtOnce;
};

std::vector<Option> BuildOptions(BuildFlags& flags) {
  std::vector<Option> options = {
      {"path", &flags.compile.files, "Source files, and folders of them", {.required = true, .names = Names::kFiles}},
      AtOnce(flags.at_once),
  };
  for (Option& option : OptionsOfEachModule(flags.compile)) options.push_back(std::move(option));
  return options;
}

int RunBuild(const ClientOptions& options, BuildFlags flags) {
  absl::StatusOr<std::vector<std::string>> files = SourcesBelow(flags.compile.files);
  if (!files.ok()) return Fail(files.status());
  flags.compile.files = *std::move(files);
  return WithFlags(options, flags.compile,
                   [&](Client& client) { return BuildAll(client, flags.compile, flags.at_once); });
}

// --- Watch

constexpr char kWatchDetails[] =
    R"(Compiles as `kernixctl compile` does, and again whenever a file or one of its headers changes, until Ctrl-C. Prints
one line for each new result, and the compiler's output once for each error. The files need not exist yet.

Exit codes: 3 no daemon, 5 no usable compiler, 130 ended by Ctrl-C.

Examples:
  kernixctl watch vector_add.cu --arch sm_90
  kernixctl watch vector_add.cu --arch sm_90 --print resources
  kernixctl watch kernels/*.cpp -I include --build-directory out)";

constexpr std::chrono::milliseconds kInterval{200};

// A module, and what it depends on.
class WatchedModule {
 public:
  WatchedModule(Client& client, const CompileFlags& flags, std::vector<std::string> files)
      : client_(client), flags_(flags), files_(std::move(files)) {}

  // Compiles the module if something has changed, and shows the result if it is another one. Returns kOk, or the exit
  // code if no edit can help.
  int Poll() {
    if (!seen_.Changed(Paths())) return kOk;
    std::vector<std::string> warnings;
    const absl::StatusOr<std::shared_ptr<Module>> module = Load(warnings);
    seen_.NoteLoad(Paths());
    return Interrupted() ? kInterrupted : Show(module, warnings);
  }

 private:
  absl::StatusOr<std::shared_ptr<Module>> Load(std::vector<std::string>& warnings) {
    LoadCallbacks callbacks;
    callbacks.warning = [&warnings](std::string_view text) { warnings.emplace_back(text); };
    callbacks.inputs = [this](const std::vector<std::string>& inputs) { inputs_ = inputs; };
    return LoadModule(client_, files_, flags_, std::move(callbacks));
  }

  std::vector<std::string> Paths() const {
    std::vector<std::string> paths = files_;
    paths.insert(paths.end(), inputs_.begin(), inputs_.end());
    return paths;
  }

  int Show(const absl::StatusOr<std::shared_ptr<Module>>& module, const std::vector<std::string>& warnings) {
    std::string result = module.ok() ? (*module)->key() : GetErrorDetail(module.status()).SerializeAsString();
    for (const std::string& warning : warnings) result += "\n" + warning;
    if (result == result_) return kOk;
    for (const std::string& warning : warnings) PrintWarning(warning);
    const absl::Status status = module.ok() ? Deliver(**module, files_, flags_) : module.status();
    result_ = status.ok() || !module.ok() ? std::move(result) : "";  // what could not be written is written next time
    if (status.ok()) return kOk;
    SaveFailure(status, files_, flags_);
    const int code = Fail(status);
    return code == kNoDaemon || code == kToolchain ? code : kOk;
  }

  Client& client_;
  const CompileFlags& flags_;
  const std::vector<std::string> files_;
  std::vector<std::string> inputs_;  // of the latest load that came so far
  SeenFiles seen_{Env::Posix()};
  std::string result_;  // the key or the error, with the warnings
};

int WatchAll(Client& client, const CompileFlags& flags) {
  std::vector<WatchedModule> modules;
  for (std::vector<std::string>& files : Modules(flags)) modules.emplace_back(client, flags, std::move(files));
  while (true) {
    for (WatchedModule& module : modules) {
      if (const int code = module.Poll(); code != kOk) return code;
    }
    if (Interrupted()) return kInterrupted;
    std::this_thread::sleep_for(kInterval);
  }
}

}  // namespace

Command CompileCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<CompileFlags>();
  return {.name = "compile",
          .summary = "Compile source files into the cache",
          .details = kCompileDetails,
          .options = CompileOptions(*flags),
          .run = [&options, flags] {
            return WithFlags(options, *flags, [&flags](Client& client) { return CompileAll(client, *flags); });
          }};
}

Command BuildCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<BuildFlags>();
  return {.name = "build",
          .summary = "Compile many source files into the cache, side by side",
          .details = kBuildDetails,
          .options = BuildOptions(*flags),
          .run = [&options, flags] { return RunBuild(options, *flags); }};
}

Command WatchCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<CompileFlags>();
  return {.name = "watch",
          .summary = "Compile source files whenever they change",
          .details = kWatchDetails,
          .options = CompileOptions(*flags),
          .run = [&options, flags] {
            return WithFlags(options, *flags, [&flags](Client& client) { return WatchAll(client, *flags); });
          }};
}

}  // namespace kernix::ctl
