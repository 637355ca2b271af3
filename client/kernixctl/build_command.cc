// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "client/kernixctl/batch.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/compile_flags.h"
#include "client/kernixctl/compile_module.h"
#include "client/kernixctl/module_report.h"
#include "client/load/matching_files.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Compiles many files side by side through the daemon, each into a module of its own, as `compile` does. Programs that
load the same files with the same options later find them in the cache. A folder stands for the .cu, .cpp, .cc and .cxx
files in it and below it that have a `// @BE` line. What is for CUDA does not concern C++ files. What fails does not
keep the others from being built.

Exit codes: that of the first file that failed: 3 no daemon, 4 the code does not compile, 5 no usable compiler, 6 not in
the cache; 130 interrupted.

Examples:
  kernixctl build kernels --arch sm_90
  kernixctl build kernels/*.cu more_kernels --arch 8.0,9.0 -j 8 --json)";

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
                   StrCat("no source below ", folder, " has a `// @BE` line, which would export a function"));
}

// Leaves out what a load of C++ refuses.
void WithoutCuda(LoadOptions& options) {
  options.compute_capability.clear();
  options.keep = false;
}

// The source files that `paths` stand for: a file for itself, a folder for the sources in it and below it that export a
// function by a `// @BE` line. INVALID_REQUEST names a folder without such files.
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::vector<std::string>& paths) {
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

absl::StatusOr<BatchResult> Build(Client& client, const CompileFlags& flags, const std::string& file,
                                  const LoadCallbacks& callbacks) {
  LoadOptions options = LoadOptionsFrom(flags);
  options.batch = true;
  options.callbacks = callbacks;
  const Language language = IsCuda({file}) ? Language::kCuda : Language::kCpp;
  if (language == Language::kCpp) WithoutCuda(options);
  KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<Module> module,
                          LoadFiles(client, language, NameOf({file}, flags), {file}, options));
  const CompiledFiles compiled{{file}, *module, module->path()};
  return BatchResult{flags.json ? SummaryJson(compiled) : SummaryLine(compiled),
                     OriginOf(module->from_upstream(), module->cache_hit(), module->joined())};
}

int BuildAll(Client& client, const CompileFlags& flags, size_t at_once) {
  std::vector<BatchItem> items;
  for (const std::string& file : flags.files) {
    items.push_back({file, [&client, &flags, &file](const LoadCallbacks& callbacks) {
                       return Build(client, flags, file, callbacks);
                     }});
  }
  return RunBatch(items, at_once, flags.verbose);
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
