// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/compile_module.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "client/kernixctl/batch.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/progress_line.h"
#include "client/load/load_request.h"
#include "client/load/matching_files.h"
#include "client/load/module.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/base/request_checks.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/languages.h"
#include "common/os/env.h"
#include "kernix/error.h"
#include "kernix/inspection.h"

namespace kernix::ctl {
namespace {

void AddToken(std::string_view text, std::vector<std::string>& tokens) {
  const std::string token(absl::StripAsciiWhitespace(ToAbsl(text)));
  if (!token.empty()) tokens.push_back(token);
}

// '<' and '>' do not count as brackets, because they are also comparison operators.
std::vector<std::string> SplitTokens(std::string_view text) {
  std::vector<std::string> tokens;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
    if (c != ',' || depth > 0) continue;
    AddToken(text.substr(begin, i - begin), tokens);
    begin = i + 1;
  }
  AddToken(text.substr(begin), tokens);
  return tokens;
}

// Two files whose modules have the same name, or "" if there are none. In a build directory, they would overwrite each
// other.
std::string FilesOfOneName(const CompileFlags& flags) {
  std::map<std::string, std::string> file_of;
  for (const std::vector<std::string>& files : Modules(flags)) {
    const auto [other, is_new] = file_of.emplace(NameOf(files, flags), files[0]);
    if (!is_new) return StrCat(other->second, " and ", files[0]);
  }
  return "";
}

// JAX's headers, which loads of a Python with JAX search last. Where headers are searched is part of a load's key.
std::vector<std::string> JaxHeaders(const std::vector<std::string>& site_packages) {
  for (const std::string& folder : site_packages) {
    const std::filesystem::path headers = std::filesystem::path(folder) / "jaxlib" / "include";
    std::error_code ignored;
    if (std::filesystem::is_directory(headers, ignored)) return {headers.string()};
  }
  return {};
}

// Returns "" if `flags` can be used together.
std::string Contradiction(const CompileFlags& flags) {
  if (!flags.output.empty() && Modules(flags).size() != 1) {
    return "-o takes one module: one source file, or several with --name or --separate";
  }
  for (const std::string& file : flags.files) {
    if (LanguageOfFile(file) == v1::LANGUAGE_UNSPECIFIED)
      return file + ": a source file ends in .cu, .cpp, .cc or .cxx";
  }
  if (NeedsCuda(flags.print)) {
    for (const std::vector<std::string>& files : Modules(flags)) {
      const LanguageTraits& language = TraitsOf(LanguageOfFiles(files));
      if (language.needs_nvcc) continue;
      return StrCat("--print ", flags.print, " is for CUDA sources only; ", files[0], " is ", language.name);
    }
  }
  if (flags.load.force_rebuild && LoadOptionsFrom(flags).policy == LoadPolicy::kCached) {
    return "--force compiles, and --policy cached forbids that";
  }
  const std::string files = flags.build_directory.empty() ? "" : FilesOfOneName(flags);
  if (!files.empty()) return files + " would have the same names in --build-directory; compile them separately";
  return "";
}

// `line` must outlive the callbacks.
LoadCallbacks Complete(LoadCallbacks callbacks, ProgressLine& line, bool verbose) {
  callbacks.output = [&line](std::string_view text) {
    line.Erase();
    std::cerr << text;
  };
  if (!callbacks.warning) {
    callbacks.warning = [&line](std::string_view text) {
      line.Erase();
      PrintWarning(text);
    };
  }
  callbacks.progress = [&line](std::string_view text) { line.SetState(text); };
  if (verbose) callbacks.progress = [](std::string_view text) { std::cerr << "kernixctl: " << text << "\n"; };
  callbacks.cancelled = [&line] {
    line.Poll();
    return Interrupted();
  };
  return callbacks;
}

absl::StatusOr<std::string> CopyTo(const std::string& output, const Module& module) {
  if (output.empty()) return module.path();
  KERNIX_ASSIGN_OR_RETURN(const std::string content, LibraryFileOf(module));
  KERNIX_RETURN_IF_ERROR(Env::Posix().WriteFileDurably(output, content, 0755));
  return output;
}

absl::StatusOr<std::string> Report(const CompiledFiles& compiled, const CompileFlags& flags) {
  if (!flags.print.empty()) return TextToPrint(compiled.module, flags.print);
  if (!flags.json) return SummaryLine(compiled) + "\n";
  return SummaryJson(compiled) + "\n";
}

constexpr char kAnnotation[] = "@BE";

bool ExportsSomething(const std::string& file) {
  const absl::StatusOr<std::string> text = Env::Posix().ReadFile(file);
  return !text.ok() || text->find(kAnnotation) != std::string::npos;  // the load says why a file cannot be read
}

absl::StatusOr<std::vector<std::string>> SourcesIn(const std::string& folder) {
  KERNIX_ASSIGN_OR_RETURN(std::vector<std::string> files,
                          MatchingFiles(folder, {"**/*.cu", "**/*.cpp", "**/*.cc", "**/*.cxx"}));
  std::erase_if(files, [](const std::string& file) { return !ExportsSomething(file); });
  if (!files.empty()) return files;
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("no source below ", folder, " has a `// @BE` line, which exports a function"));
}

// Leaves out what a load of C++ refuses.
void WithoutCuda(LoadOptions& options) {
  options.compute_capability.clear();
  options.keep = false;
}

}  // namespace

Function ParseFunction(std::string_view text) {
  const size_t equals = text.find('=');
  Function function{.name = std::string(absl::StripAsciiWhitespace(ToAbsl(text.substr(0, equals))))};
  if (equals != std::string_view::npos) function.tokens = SplitTokens(text.substr(equals + 1));
  return function;
}

std::vector<Option> OptionsOfEachModule(CompileFlags& flags) {
  return {
      {"--arch", &flags.load.compute_capability,
       "CUDA: sm_90, 9.0, all-major, or a comma-separated list for a fat binary (default: native, this machine's first "
       "GPU)"},
      {"-D,--define", &flags.defines, "Define a macro: NAME or NAME=VALUE"},
      {"-I,--include", &flags.load.include_paths, "Search this folder for headers", {.names = Names::kFolders}},
      {"--flag", &flags.load.compile_flags, "Pass a flag to the compiler, for example --flag=-fopenmp"},
      {"--link-flag", &flags.load.link_flags, "Pass a flag to the linker, for example --link-flag=-lm"},
      {"-O", &flags.load.optimization_level, "Optimisation level, 0 to 3", {.most = kernix::kMaxOptimizationLevel}},
      {"--debug", &flags.load.debug,
       "Compile for a debugger, a profiler or a sanitizer: -g (and -G), frame pointers, no optimisation"},
      {"--use-fast-math", &flags.load.use_fast_math, "CUDA: faster, less exact arithmetic"},
      {"--no-cuda-graph", &flags.no_cuda_graph, "CUDA: do not let XLA capture the functions into CUDA graphs"},
      SitePackages(flags.site_packages),
      {"--keep", &flags.load.keep, "CUDA: keep PTX, machine code as text and ptxas's report of each kernel"},
      PolicyOption(flags.policy),
      {"--force", &flags.load.force_rebuild, "Compile even if the cache has the result"},
      {"-v,--verbose", &flags.load.verbose, "Show commands, compiler output and progress"},
      {"--json", &flags.json, "Print one JSON object per module"},
  };
}

std::vector<Option> CompileOptions(CompileFlags& flags) {
  std::vector<Option> options = {
      {"file",
       &flags.files,
       "Source files; each becomes a separate module, named after the file",
       {.required = true, .names = Names::kFiles}},
      {"--name", &flags.name, "Make one module of all files, with this name"},
      {"--separate", &flags.load.separate, "Make one module of all files; compile each file separately, and link once"},
      {"--function", &flags.functions, "Export NAME=arg,ret,..., or NAME alone to infer the rest"},
  };
  for (Option& option : OptionsOfEachModule(flags)) options.push_back(std::move(option));
  options.insert(
      options.end(),
      {
          {"--print",
           &flags.print,
           "Print this instead of the artifact's path: ptx or sass (for the newest architecture; both imply --keep), "
           "resources, or source (the generated source)",
           {.excludes = "--json", .choices = kPrintable}},
          {"-o,--output",
           &flags.output,
           "Write the library to this file, for kernix.load_library()",
           {.names = Names::kFiles}},
          {"--build-directory",
           &flags.build_directory,
           "Write the generated source, the artifact and the kept files to this folder; after a compile error "
           "NAME.failed, whose run.sh runs the command again",
           {.names = Names::kFolders}},
          {"--jobs",
           &flags.load.max_parallel_jobs,
           "Limit the number of compile jobs at a time (default: the daemon's limit)",
           {.least = 1, .most = std::numeric_limits<uint32_t>::max()}},
      });
  return options;
}

LoadOptions LoadOptionsFrom(const CompileFlags& flags) {
  LoadOptions options = flags.load;
  if (!flags.functions.empty()) {
    options.functions.emplace();
    for (const std::string& text : flags.functions) options.functions->push_back(ParseFunction(text));
  }
  std::vector<std::string> defines;
  for (const std::string& define : flags.defines) defines.push_back("-D" + define);
  options.compile_flags.insert(options.compile_flags.begin(), defines.begin(), defines.end());
  options.last_include_paths = JaxHeaders(flags.site_packages);
  options.keep = options.keep || NeedsKeep(flags.print);
  options.allow_cuda_graph = !flags.no_cuda_graph;
  if (!flags.policy.empty()) options.policy = PolicyNamed(flags.policy, "--policy").value();
  return options;
}

std::vector<std::vector<std::string>> Modules(const CompileFlags& flags) {
  if (flags.load.separate || !flags.name.empty()) return {flags.files};
  std::vector<std::vector<std::string>> modules;
  for (const std::string& file : flags.files) modules.push_back({file});
  return modules;
}

Language LanguageOfFiles(const std::vector<std::string>& files) {
  const auto other = std::find_if(files.begin(), files.end(),
                                  [](const std::string& file) { return LanguageOfFile(file) != v1::LANGUAGE_CPP; });
  return FromWire(other == files.end() ? v1::LANGUAGE_CPP : LanguageOfFile(*other));
}

std::string NameOf(const std::vector<std::string>& files, const CompileFlags& flags) {
  return flags.name.empty() ? std::filesystem::path(files[0]).stem().string() : flags.name;
}

void PrintWarning(std::string_view text) { std::cerr << "kernixctl: warning: " << PrintableLines(text) << "\n"; }

int WithFlags(const ClientOptions& options, const CompileFlags& flags, const std::function<int(Client&)>& use) {
  const std::string contradiction = Contradiction(flags);
  if (!contradiction.empty()) return RefuseUsage(contradiction);
  ClientOptions with_packages = options;
  with_packages.site_packages = flags.site_packages;
  CatchInterrupt();
  return WithClient(with_packages, use);
}

absl::StatusOr<std::shared_ptr<Module>> LoadModule(Client& client, const std::vector<std::string>& files,
                                                   const CompileFlags& flags, LoadCallbacks callbacks) {
  const std::string name = NameOf(files, flags);
  ProgressLine line(files.size() == 1 ? Basename(files[0]) : name, std::cerr,
                    !flags.load.verbose && isatty(STDERR_FILENO) == 1);
  LoadOptions options = LoadOptionsFrom(flags);
  options.callbacks = Complete(std::move(callbacks), line, flags.load.verbose);
  return LoadFiles(client, LanguageOfFiles(files), name, files, options);
}

absl::StatusOr<std::vector<std::string>> SourcesBelow(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> found, SourcesIn(path));
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

absl::StatusOr<std::shared_ptr<Module>> LoadAlone(Client& client, const std::string& file, const CompileFlags& flags,
                                                  const std::optional<std::vector<std::string>>& environment,
                                                  const LoadCallbacks& callbacks) {
  LoadOptions options = LoadOptionsFrom(flags);
  options.batch = true;
  options.environment = environment;
  options.callbacks = callbacks;
  const Language language = LanguageOfFiles({file});
  if (!TraitsOf(language).needs_nvcc) WithoutCuda(options);
  return LoadFiles(client, language, NameOf({file}, flags), {file}, options);
}

void SaveFailure(const absl::Status& error, const std::vector<std::string>& files, const CompileFlags& flags) {
  if (flags.build_directory.empty() || DescribeError(error).category != ErrorCategory::kCompilation) return;
  const auto script = SaveFailedCommand(error, JoinPath(flags.build_directory, NameOf(files, flags) + ".failed"));
  if (script.ok()) std::cerr << "kernixctl: to run the failed command again: " << Printable(*script) << "\n";
}

absl::Status Deliver(const Module& module, const std::vector<std::string>& files, const CompileFlags& flags) {
  KERNIX_ASSIGN_OR_RETURN(const std::string path, CopyTo(flags.output, module));
  if (!flags.build_directory.empty()) KERNIX_RETURN_IF_ERROR(WriteBuildDirectory(module, flags.build_directory));
  KERNIX_ASSIGN_OR_RETURN(const std::string report, Report({files, module, path}, flags));
  std::cout << report << std::flush;
  return absl::OkStatus();
}

namespace {

std::string NumberOr(const std::optional<uint64_t>& number, const char* unknown) {
  return number ? StrCat(*number) : unknown;
}

// With blocks of this many threads, a usual number.
constexpr uint64_t kThreads = 256;

// In percent.
std::string OccupancyOr(const KernelResources& kernel, const char* unknown) {
  const std::optional<double> occupancy = Occupancy(kernel, kThreads);
  return occupancy ? StrCat(std::lround(100 * *occupancy)) : unknown;
}

std::string KernelJson(const KernelResources& kernel) {
  return JsonObject()
      .Text("name", kernel.name)
      .Text("symbol", kernel.symbol)
      .Text("architecture", kernel.architecture)
      .Number("registers", kernel.registers)
      .Number("shared_memory", kernel.shared_memory)
      .Number("stack_frame", kernel.stack_frame)
      .Json("spill_stores", NumberOr(kernel.spill_stores, "null"))
      .Json("spill_loads", NumberOr(kernel.spill_loads, "null"))
      .Number("constant_memory", kernel.constant_memory)
      .Number("barriers", kernel.barriers)
      .Json(StrCat("occupancy_percent_", kThreads, "_threads"), OccupancyOr(kernel, "null"))
      .Str();
}

std::string FunctionsJson(const Module& module) {
  return JsonOfAll(module.functions(), [](const FunctionInfo& function) {
    return JsonObject().Text("name", function.name).Text("arg_spec", absl::StrJoin(function.tokens, " ")).Str();
  });
}

absl::StatusOr<std::string> TextOf(const Module& module, const std::string& printable) {
  if (printable == "ptx") return Ptx(module);
  if (printable == "sass") return Sass(module);
  if (printable == "source") return GeneratedSource(module);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<KernelResources> kernels, Resources(module));
  return KernelTable(kernels);
}

std::string HowItCame(const Module& module) {
  if (module.cache_hit()) return InWords(module.origin());
  return StrCat("built in ", module.build_ms(), " ms: ", module.miss_reason());
}

}  // namespace

std::string KernelTable(const std::vector<KernelResources>& kernels) {
  std::vector<std::vector<std::string>> rows = {{"KERNEL", "ARCHITECTURE", "REGISTERS", "SHARED", "STACK",
                                                 "SPILL STORES", "SPILL LOADS", "CONSTANT", "BARRIERS",
                                                 StrCat("OCCUPANCY % (", kThreads, " THREADS)")}};
  for (const KernelResources& kernel : kernels) {
    rows.push_back({kernel.name, kernel.architecture, StrCat(kernel.registers), StrCat(kernel.shared_memory),
                    StrCat(kernel.stack_frame), NumberOr(kernel.spill_stores, "?"), NumberOr(kernel.spill_loads, "?"),
                    StrCat(kernel.constant_memory), StrCat(kernel.barriers), OccupancyOr(kernel, "?")});
  }
  return FormatTable(rows);
}

std::string KernelsJson(const std::vector<KernelResources>& kernels) { return JsonOfAll(kernels, KernelJson); }

const std::vector<std::string> kPrintable = {"ptx", "sass", "source", "resources"};

bool NeedsKeep(const std::string& printable) { return printable == "ptx" || printable == "sass"; }

bool NeedsCuda(const std::string& printable) { return NeedsKeep(printable) || printable == "resources"; }

std::string SummaryLine(const CompiledFiles& compiled) {
  const Module& module = compiled.module;
  std::vector<std::string> names;
  for (const FunctionInfo& function : module.functions()) names.push_back(function.name);
  return Printable(StrCat(compiled.files.size() == 1 ? compiled.files[0] : module.name(), ": ",
                          absl::StrJoin(names, ", "), " (", HowItCame(module), ") -> ", compiled.path));
}

std::string SummaryJson(const CompiledFiles& compiled) {
  const Module& module = compiled.module;
  JsonObject object;
  object.Text("file", compiled.files[0])
      .Text("key", module.key())
      .Boolean("cache_hit", module.cache_hit())
      .Boolean("from_upstream", module.origin() == Origin::kUpstream)
      .Number("build_ms", module.build_ms())
      .Text("miss_reason", module.miss_reason())
      .Text("path", compiled.path)
      .Json("functions", FunctionsJson(module))
      .Text("name", module.name())
      .Json("files", JsonStrings(compiled.files));
  if (const auto kernels = Resources(module); kernels.ok()) object.Json("kernels", KernelsJson(*kernels));
  return object.Str();
}

absl::StatusOr<std::string> TextToPrint(const Module& module, const std::string& printable) {
  KERNIX_ASSIGN_OR_RETURN(std::string text, TextOf(module, printable));
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace kernix::ctl
