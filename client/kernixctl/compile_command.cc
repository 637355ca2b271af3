// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "client/kernixctl/command.h"
#include "client/kernixctl/function_argument.h"
#include "client/kernixctl/module_report.h"
#include "client/kernixctl/progress_line.h"
#include "common/base/paths.h"
#include "common/base/source_language.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/optimization_level.h"
#include "common/os/env.h"
#include "kernix/inspection.h"
#include "kernix/load.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Compiles each file through the daemon, or finds it in the cache, and opens the result to check that it
loads. Without --function, the `// @BE name [tokens]` lines of a file say what it exports. With --name or
--separate, all files form one module: one translation unit together, in order, or one each.

Exit codes: 3 no daemon, 4 the code does not compile, 5 no usable compiler, 130 interrupted.

Examples:
  kernixctl compile vector_add.cu --arch sm_90
  kernixctl compile vector_add.cu --arch 8.6,9.0 -o vector_add.so
  kernixctl compile add_one.cpp --function add_one=arg,ret -D N=4 --flag=-fopenmp
  kernixctl compile kernels/*.cu --arch sm_90 --json
  kernixctl compile vector_add.cu --arch sm_90 --print ptx
  kernixctl compile vector_add.cu --arch sm_90 --keep --build-directory out
  kernixctl compile part1.cu part2.cu helpers.cpp --separate --name parts --flag=-rdc=true)";

struct Flags {
  std::vector<std::string> files;
  std::vector<std::string> functions;
  std::vector<std::string> defines;
  std::vector<std::string> flags;
  std::vector<std::string> link_flags;
  std::vector<std::string> include_paths;
  std::vector<std::string> site_packages;
  std::string name;
  std::string architectures;
  std::string output;
  std::string build_directory;
  std::string print;
  int optimization_level = 3;
  uint32_t jobs = 0;
  bool separate = false;
  bool debug = false;
  bool keep = false;
  bool use_fast_math = false;
  bool no_cuda_graph = false;
  bool force = false;
  bool verbose = false;
  bool json = false;
};

volatile sig_atomic_t interrupted = 0;

void NoteInterrupt(int) { interrupted = 1; }

// Ctrl-C cancels the load, so that the daemon stops building for it. A second Ctrl-C ends this process at once.
void CatchInterrupt() {
  struct sigaction action {};
  action.sa_handler = NoteInterrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

// `line` must outlive the callbacks.
LoadCallbacks Callbacks(ProgressLine& line, bool verbose) {
  LoadCallbacks callbacks;
  callbacks.output = [&line](std::string_view text) {
    line.Erase();
    std::cerr << text;
  };
  callbacks.warning = [&line](std::string_view text) {
    line.Erase();
    std::cerr << "kernixctl: warning: " << PrintableLines(text) << "\n";
  };
  callbacks.progress = [&line](std::string_view text) { line.SetState(text); };
  if (verbose) callbacks.progress = [](std::string_view text) { std::cerr << "kernixctl: " << text << "\n"; };
  callbacks.cancelled = [&line] {
    line.Poll();
    return interrupted != 0;
  };
  return callbacks;
}

// All options except the callbacks.
LoadOptions OptionsFrom(const Flags& flags) {
  LoadOptions options;
  if (!flags.functions.empty()) {
    options.functions.emplace();
    for (const std::string& text : flags.functions) options.functions->push_back(ParseFunction(text));
  }
  for (const std::string& define : flags.defines) options.compile_flags.push_back("-D" + define);
  options.compile_flags.insert(options.compile_flags.end(), flags.flags.begin(), flags.flags.end());
  options.link_flags = flags.link_flags;
  options.include_paths = flags.include_paths;
  options.compute_capability = flags.architectures;
  options.optimization_level = flags.optimization_level;
  options.separate = flags.separate;
  options.debug = flags.debug;
  options.keep = flags.keep || NeedsKeep(flags.print);
  options.use_fast_math = flags.use_fast_math;
  options.allow_cuda_graph = !flags.no_cuda_graph;
  options.max_parallel_jobs = flags.jobs;
  options.force_rebuild = flags.force;
  options.verbose = flags.verbose;
  return options;
}

// The files of each module: one file each, or all files in one module.
std::vector<std::vector<std::string>> Modules(const Flags& flags) {
  if (flags.separate || !flags.name.empty()) return {flags.files};
  std::vector<std::vector<std::string>> modules;
  for (const std::string& file : flags.files) modules.push_back({file});
  return modules;
}

bool IsCuda(const std::vector<std::string>& files) {
  return std::any_of(files.begin(), files.end(),
                     [](const std::string& file) { return LanguageOfFile(file) == v1::LANGUAGE_CUDA; });
}

std::string NameOf(const std::vector<std::string>& files, const Flags& flags) {
  return flags.name.empty() ? std::filesystem::path(files[0]).stem().string() : flags.name;
}

absl::StatusOr<std::string> CopyTo(const std::string& output, const Module& module) {
  if (output.empty()) return module.path();
  KERNIX_ASSIGN_OR_RETURN(const std::string content, Env::Posix().ReadFile(module.path()));
  KERNIX_RETURN_IF_ERROR(Env::Posix().WriteFileDurably(output, content, 0755));
  return output;
}

absl::StatusOr<std::shared_ptr<Module>> LoadModule(Client& client, const std::vector<std::string>& files,
                                                   const Flags& flags) {
  const std::string name = NameOf(files, flags);
  ProgressLine line(files.size() == 1 ? Basename(files[0]) : name, std::cerr,
                    !flags.verbose && isatty(STDERR_FILENO) == 1);
  LoadOptions options = OptionsFrom(flags);
  options.callbacks = Callbacks(line, flags.verbose);
  return LoadFiles(client, IsCuda(files) ? Language::kCuda : Language::kCpp, name, files, options);
}

absl::StatusOr<std::string> Report(const CompiledFiles& compiled, const Flags& flags) {
  if (!flags.print.empty()) return TextToPrint(compiled.module, flags.print);
  if (!flags.json) return SummaryLine(compiled) + "\n";
  KERNIX_ASSIGN_OR_RETURN(const std::string json, SummaryJson(compiled));
  return json + "\n";
}

absl::Status CompileModule(Client& client, const std::vector<std::string>& files, const Flags& flags) {
  KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<Module> module, LoadModule(client, files, flags));
  KERNIX_ASSIGN_OR_RETURN(const std::string path, CopyTo(flags.output, *module));
  if (!flags.build_directory.empty()) KERNIX_RETURN_IF_ERROR(WriteBuildDirectory(*module, flags.build_directory));
  KERNIX_ASSIGN_OR_RETURN(const std::string report, Report({files, *module, path}, flags));
  std::cout << report << std::flush;
  return absl::OkStatus();
}

// Continues after a module that fails to compile. The first failure decides the exit code.
int CompileAll(Client& client, const Flags& flags) {
  int result = kOk;
  for (const std::vector<std::string>& files : Modules(flags)) {
    if (interrupted != 0) return kInterrupted;
    const absl::Status status = CompileModule(client, files, flags);
    if (status.ok()) continue;
    const int code = Fail(status);
    if (result == kOk) result = code;
    if (code == kNoDaemon || code == kInterrupted) break;
  }
  return result;
}

// Two files whose modules have the same name, or "" if there are none. In a build directory, they would overwrite each
// other.
std::string FilesOfOneName(const Flags& flags) {
  std::map<std::string, std::string> file_of;
  for (const std::vector<std::string>& files : Modules(flags)) {
    const auto [other, is_new] = file_of.emplace(NameOf(files, flags), files[0]);
    if (!is_new) return StrCat(other->second, " and ", files[0]);
  }
  return "";
}

// Returns "" if `flags` can be used together.
std::string Contradiction(const Flags& flags) {
  if (!flags.output.empty() && Modules(flags).size() != 1) {
    return "-o takes one module: one source file, or several with --name or --separate";
  }
  for (const std::string& file : flags.files) {
    if (LanguageOfFile(file) == v1::LANGUAGE_UNSPECIFIED)
      return file + ": a source file ends in .cu, .cpp, .cc or .cxx";
  }
  if (NeedsKeep(flags.print)) {
    for (const std::vector<std::string>& files : Modules(flags)) {
      if (!IsCuda(files)) return StrCat("--print ", flags.print, " is for CUDA sources only; ", files[0], " is C++");
    }
  }
  const std::string files = flags.build_directory.empty() ? "" : FilesOfOneName(flags);
  if (!files.empty()) return files + " would have the same names in --build-directory; compile them separately";
  return "";
}

int Run(const GlobalOptions& options, const Flags& flags) {
  const std::string contradiction = Contradiction(flags);
  if (!contradiction.empty()) return RefuseUsage(contradiction);
  GlobalOptions with_packages = options;
  with_packages.client.site_packages = flags.site_packages;
  CatchInterrupt();
  return WithClient(with_packages, [&flags](Client& client) { return CompileAll(client, flags); });
}

std::vector<Option> Options(Flags& flags) {
  return {
      {"file",
       &flags.files,
       "Source files; each becomes a separate module, named after the file",
       {.required = true, .names = Names::kFiles}},
      {"--name", &flags.name, "Make one module of all files, with this name"},
      {"--separate", &flags.separate, "Make one module of all files; compile each file separately, and link once"},
      {"--arch", &flags.architectures,
       "CUDA: sm_90, 9.0, or a comma-separated list for a fat binary (default: this machine's first GPU)"},
      {"--function", &flags.functions, "Export NAME=arg,ret,..., or NAME alone to infer the rest"},
      {"-D,--define", &flags.defines, "Define a macro: NAME or NAME=VALUE"},
      {"-I,--include", &flags.include_paths, "Search this folder for headers", {.names = Names::kFolders}},
      {"--flag", &flags.flags, "Pass a flag to the compiler, for example --flag=-fopenmp"},
      {"--link-flag", &flags.link_flags, "Pass a flag to the linker, for example --link-flag=-lm"},
      {"-O", &flags.optimization_level, "Optimisation level", {.most = kernix::flags::kMaxOptimizationLevel}},
      {"--debug", &flags.debug,
       "Compile for a debugger, a profiler or a sanitizer: -g (and -G), frame pointers, no optimisation"},
      {"--use-fast-math", &flags.use_fast_math, "CUDA: faster, less exact arithmetic"},
      {"--no-cuda-graph", &flags.no_cuda_graph, "CUDA: do not let XLA capture the functions into CUDA graphs"},
      SitePackages(flags.site_packages),
      {"--keep", &flags.keep, "CUDA: keep PTX, machine code and the resources of each kernel"},
      {"--print",
       &flags.print,
       "Print this instead of the artifact's path: ptx or sass (for the newest architecture), resources, or source "
       "(the generated source). The first three imply --keep",
       {.choices = kPrintable}},
      {"-o,--output", &flags.output, "Copy the artifact to this file", {.names = Names::kFiles}},
      {"--build-directory",
       &flags.build_directory,
       "Write the generated source, the artifact and the kept files to this folder",
       {.names = Names::kFolders}},
      {"--jobs",
       &flags.jobs,
       "Limit the compile jobs that run at a time (default: the daemon's limit)",
       {.least = 1, .most = std::numeric_limits<uint32_t>::max()}},
      {"--force", &flags.force, "Compile even if the cache has the result"},
      {"-v,--verbose", &flags.verbose, "Show commands, compiler output and progress"},
      {"--json", &flags.json, "Print one JSON object per module", {.excludes = "--print"}},
  };
}

}  // namespace

Command CompileCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<Flags>();
  return {.name = "compile",
          .summary = "Compile source files into the cache",
          .details = kDetails,
          .options = Options(*flags),
          .run = [&options, flags] { return Run(options, *flags); }};
}

}  // namespace kernix::ctl
