// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/progress_line.h"
#include "daemon/base/env.h"
#include "daemon/base/paths.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "kernix/load.h"

namespace kernix::ctl {
namespace {

constexpr char kFooter[] =
    R"(Compiles each file through the daemon, or finds it in the cache, and opens the result to see that it loads. Without
--function the `// @BE name [tokens]` lines of a file say what it exports.

Exit codes: 3 no daemon, 4 the code does not compile, 5 no usable compiler, 130 interrupted.

Examples:
  kernixctl compile vector_add.cu --arch sm_90
  kernixctl compile vector_add.cu --arch 8.6,9.0 -o vector_add.so
  kernixctl compile add_one.cpp --function add_one=arg,ret -D N=4 --flag=-fopenmp
  kernixctl compile kernels/*.cu --arch sm_90 --json)";

struct Flags {
  std::vector<std::string> files;
  std::vector<std::string> functions;
  std::vector<std::string> defines;
  std::vector<std::string> flags;
  std::vector<std::string> link_flags;
  std::vector<std::string> include_paths;
  std::vector<std::string> site_packages;
  std::string architectures;
  std::string output;
  int optimization_level = 3;
  bool use_fast_math = false;
  bool force = false;
  bool verbose = false;
  bool json = false;
};

volatile sig_atomic_t interrupted = 0;

void NoteInterrupt(int) { interrupted = 1; }

// Ctrl-C cancels the load, so that the daemon does not go on for nobody; a second one ends us at once.
void CatchInterrupt() {
  struct sigaction action {};
  action.sa_handler = NoteInterrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

std::optional<Language> LanguageOf(const std::string& file) {
  const std::string extension = file.substr(std::min(file.rfind('.'), file.size()));
  if (extension == ".cu") return Language::kCuda;
  if (extension == ".cpp" || extension == ".cc" || extension == ".cxx") return Language::kCpp;
  return std::nullopt;
}

// "add=arg,arg,ret", or "add" for one whose signature says it.
Function ParseFunction(const std::string& text) {
  const size_t equals = text.find('=');
  Function function{.name = text.substr(0, equals)};
  if (equals != std::string::npos) {
    function.tokens = absl::StrSplit(absl::string_view(text).substr(equals + 1), ',', absl::SkipEmpty());
  }
  return function;
}

// `line` must outlive them.
LoadCallbacks Callbacks(ProgressLine& line, bool verbose) {
  LoadCallbacks callbacks;
  callbacks.output = [&line](std::string_view text) {
    line.Erase();
    std::cerr << text;
  };
  callbacks.warning = [&line](std::string_view text) {
    line.Erase();
    std::cerr << "kernixctl: warning: " << text << "\n";
  };
  callbacks.progress = [&line](std::string_view text) { line.SetState(text); };
  if (verbose) callbacks.progress = [](std::string_view text) { std::cerr << "kernixctl: " << text << "\n"; };
  callbacks.cancelled = [&line] {
    line.Poll();
    return interrupted != 0;
  };
  return callbacks;
}

// All but the callbacks.
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
  options.use_fast_math = flags.use_fast_math;
  options.force_rebuild = flags.force;
  options.verbose = flags.verbose;
  return options;
}

std::string NamesOf(const Module& module) {
  std::vector<std::string> names;
  for (const FunctionInfo& function : module.functions()) names.push_back(function.name);
  return absl::StrJoin(names, ", ");
}

std::string Json(const std::string& file, const Module& module, const std::string& path) {
  std::vector<std::string> functions;
  for (const FunctionInfo& function : module.functions()) {
    functions.push_back(
        JsonObject().Text("name", function.name).Text("arg_spec", absl::StrJoin(function.tokens, " ")).Str());
  }
  return JsonObject()
      .Text("file", file)
      .Text("key", module.key())
      .Boolean("cache_hit", module.cache_hit())
      .Number("build_ms", module.build_ms())
      .Text("path", path)
      .Json("functions", JsonArray(functions))
      .Str();
}

absl::StatusOr<std::string> CopyTo(const std::string& output, const Module& module) {
  if (output.empty()) return module.path();
  KERNIX_ASSIGN_OR_RETURN(const std::string content, Env::Posix().ReadFile(module.path()));
  KERNIX_RETURN_IF_ERROR(Env::Posix().WriteFileDurably(output, content, 0755));
  return output;
}

absl::StatusOr<std::shared_ptr<Module>> LoadOne(Client& client, const std::string& file, const Flags& flags) {
  ProgressLine line(Basename(file), std::cerr, !flags.verbose && isatty(STDERR_FILENO) == 1);
  LoadOptions options = OptionsFrom(flags);
  options.callbacks = Callbacks(line, flags.verbose);
  return LanguageOf(file) == Language::kCuda ? LoadCudaFile(client, file, options) : LoadCppFile(client, file, options);
}

absl::Status CompileOne(Client& client, const std::string& file, const Flags& flags) {
  const absl::StatusOr<std::shared_ptr<Module>> module = LoadOne(client, file, flags);
  if (!module.ok()) return module.status();
  KERNIX_ASSIGN_OR_RETURN(const std::string path, CopyTo(flags.output, **module));
  if (flags.json) {
    std::cout << Json(file, **module, path) << std::endl;
  } else {
    std::cout << file << ": " << NamesOf(**module) << " ("
              << ((*module)->cache_hit() ? "from the cache" : StrCat("built in ", (*module)->build_ms(), " ms"))
              << ") -> " << path << std::endl;
  }
  return absl::OkStatus();
}

// Goes on after a file that does not compile; the first failure decides the exit code.
int CompileAll(Client& client, const Flags& flags) {
  int result = kOk;
  for (const std::string& file : flags.files) {
    if (interrupted != 0) return kInterrupted;
    const absl::Status status = CompileOne(client, file, flags);
    if (status.ok()) continue;
    const int code = Fail(status);
    if (result == kOk) result = code;
    if (code == kNoDaemon || code == kInterrupted) break;
  }
  return result;
}

int Run(const GlobalOptions& options, const Flags& flags) {
  if (!flags.output.empty() && flags.files.size() != 1) return RefuseUsage("-o takes one source file");
  for (const std::string& file : flags.files) {
    if (!LanguageOf(file)) return RefuseUsage(file + ": a source file ends in .cu, .cpp, .cc or .cxx");
  }
  GlobalOptions with_packages = options;
  with_packages.client.site_packages = flags.site_packages;
  CatchInterrupt();
  return WithClient(with_packages, [&flags](Client& client) { return CompileAll(client, flags); });
}

void AddFlags(CLI::App& command, Flags& flags) {
  command.add_option("file", flags.files, "Source files; each becomes a module of its own")->required();
  command.add_option("--arch", flags.architectures,
                     "CUDA: sm_90, 9.0, or a comma list for a fat binary (default: this machine's first GPU)");
  command.add_option("--function", flags.functions, "Export NAME=arg,ret,..., or NAME alone to infer the rest")
      ->allow_extra_args(false);
  command.add_option("-D,--define", flags.defines, "Define a macro: NAME or NAME=VALUE")->allow_extra_args(false);
  command.add_option("-I,--include", flags.include_paths, "Search this folder for headers")->allow_extra_args(false);
  command.add_option("--flag", flags.flags, "Pass this to the compiler, as --flag=-fopenmp")->allow_extra_args(false);
  command.add_option("--link-flag", flags.link_flags, "Pass this to the linker, as --link-flag=-lm")
      ->allow_extra_args(false);
  command.add_option("-O", flags.optimization_level, "Optimisation level")->check(CLI::Range(0, 3));
  command.add_flag("--use-fast-math", flags.use_fast_math, "Faster, less exact arithmetic");
  command
      .add_option("--site-packages", flags.site_packages,
                  "Folders of a Python that may hold nvcc as PyPI wheels put it")
      ->delimiter(':')
      ->envname("KERNIX_SITE_PACKAGES")
      ->allow_extra_args(false);
  command.add_option("-o,--output", flags.output, "Copy the artifact to this file");
  command.add_flag("--force", flags.force, "Compile even if it is in the cache");
  command.add_flag("-v,--verbose", flags.verbose, "Show commands, compiler output and progress");
  command.add_flag("--json", flags.json, "One JSON object a file");
}

}  // namespace

void AddCompile(CLI::App& app, const GlobalOptions& options, Action& action) {
  CLI::App* command = app.add_subcommand("compile", "Compile source files into the cache");
  const auto flags = std::make_shared<Flags>();
  AddFlags(*command, *flags);
  command->footer(kFooter);
  command->callback([&options, &action, flags] { action = [&options, flags] { return Run(options, *flags); }; });
}

}  // namespace kernix::ctl
