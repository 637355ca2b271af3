// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/linker.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/elf_image.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/driver_functions.h"

namespace kernix::build {
namespace {

// Of one link.
constexpr size_t kMostNameBytes = 32 << 10;
constexpr size_t kMostSymbols = 100'000;
constexpr char kNoSmallLink[] = "the link takes the whole libraries";

// The imports of a link's result, and their libraries.
struct Imported {
  std::vector<std::string> libraries;     // in order
  std::vector<ElfImage::Import> imports;  // sorted

  bool operator==(const Imported&) const = default;
};

// The names that the objects of a link need from elsewhere, sorted.
absl::StatusOr<std::vector<std::string>> NamesNeeded(const Step& step) {
  std::set<std::string_view> needed;
  std::set<std::string_view> defined;
  for (const exec::InputFile& input : step.action.inputs) {
    if (!input.path.ends_with(".o")) continue;
    KERNIX_ASSIGN_OR_RETURN(const ElfImage object, ElfImage::ParseObject(*input.content));
    KERNIX_ASSIGN_OR_RETURN(const std::vector<ElfImage::Symbol> symbols, object.Symbols());
    for (const ElfImage::Symbol& symbol : symbols) {
      if (symbol.is_local) continue;
      if (symbol.name.find('@') != std::string_view::npos) return absl::UnimplementedError("a version is asked for");
      (symbol.is_defined ? defined : needed).insert(symbol.name);
      if (needed.size() + defined.size() > kMostSymbols) return absl::UnimplementedError("there are many symbols");
    }
  }
  std::vector<std::string> names;
  size_t bytes = 0;
  for (const std::string_view name : needed) {
    if (defined.contains(name)) continue;
    names.emplace_back(name);
    bytes += name.size();
  }
  if (bytes > kMostNameBytes) return absl::UnimplementedError("many names are needed");
  return names;
}

// The imports of a link's result.
absl::StatusOr<Imported> ImportedBy(const Step& step, const absl::StatusOr<exec::ActionResult>& result) {
  KERNIX_RETURN_IF_ERROR(result.status());
  const auto output = result->outputs.find(step.action.outputs.front());
  if (result->exit_code != 0 || output == result->outputs.end()) return absl::NotFoundError("the link has failed");
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(*output->second));
  Imported imported;
  KERNIX_ASSIGN_OR_RETURN(imported.libraries, image.NeededLibraries());
  KERNIX_ASSIGN_OR_RETURN(imported.imports, image.Imports());
  std::sort(imported.imports.begin(), imported.imports.end());
  return imported;
}

absl::StatusOr<Imported> Analyse(const Step& step, const exec::ActionEnd& end) {
  return CatchExceptions(kNoSmallLink, [&] { return ImportedBy(step, end); });
}

// Whether only the compiler names libraries: no archive of CUDA's is linked.
bool NamesNoLibrary(const exec::Action& action) {
  return std::none_of(action.argv.begin(), action.argv.end(),
                      [](const std::string& word) { return word.starts_with("-l"); });
}

// Whether a link with `small` libraries has found all that it would have found in the whole ones. Of what is missing
// there, a name that must be found is an error of the linker's. Another one, which an archive's object may need, would
// stay without a version.
bool FoundAll(const Imported& imported, const SmallLibraries& small) {
  return std::all_of(imported.imports.begin(), imported.imports.end(), [&](const ElfImage::Import& import) {
    return !import.version.empty() || std::binary_search(small.names.begin(), small.names.end(), import.name);
  });
}

}  // namespace

exec::ActionEnd Linker::Run(Step step, const StepRunner::Run& run) {
  if (run.toolchain != nullptr) step.action = WithDriverFunctions(std::move(step.action), *run.toolchain);
  if (step.kind != StepKind::kPlainLink || !takes_stubs_) return runner_.RunCommand(step.action, step.kind, run);
  const absl::StatusOr<SmallLibraries> small =
      CatchExceptions(kNoSmallLink, [&] { return SmallLibrariesFor(step, run.toolchain); });
  if (!small.ok()) Log(LogLevel::kDebug, "small_libraries_failed", {{"reason", ToStd(small.status().message())}});
  if (small.ok() && run.mode != CompileMode::kWhole) {
    MutedStep muted(run.observer);
    exec::ActionEnd end = RunSmall(step, *small, run, &muted);
    const absl::StatusOr<Imported> imported = Analyse(step, end);
    if (imported.ok() && FoundAll(*imported, *small)) {
      links_["stubs"].Add();
      if (run.observer != nullptr && !end->output.empty()) run.observer->OnOutput(end->output);
      return end;
    }
    Log(LogLevel::kDebug, "small_libraries_failed",
        {{"reason", imported.ok() ? "it needs the whole libraries" : imported.status().message()},
         {"output", end.ok() ? end->output : std::string(end.status().message())}});
  }
  links_["whole"].Add();
  exec::ActionEnd whole = runner_.RunCommand(step.action, step.kind, run);
  const absl::StatusOr<Imported> imported = Analyse(step, whole);
  if (!imported.ok() || !small.ok() || run.mode != CompileMode::kWhole) return whole;
  // Once more, for the bytes of the other modes.
  exec::ActionEnd again = RunSmall(step, *small, run, /*observer=*/nullptr);
  const absl::StatusOr<Imported> imported_again = Analyse(step, again);
  if (!imported_again.ok() || *imported_again != *imported) return whole;
  again->output = whole->output;
  return again;
}

absl::StatusOr<SmallLibraries> Linker::SmallLibrariesFor(const Step& step,
                                                         const toolchain::ToolchainPtr& toolchain) const {
  if (toolchain == nullptr || toolchain->described != nullptr) {
    return absl::UnavailableError("the libraries are on the workers");
  }
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesNeeded(step));
  const std::vector<std::string> libraries = NamesNoLibrary(step.action)
                                                 ? std::vector<std::string>{"libstdc++.so", "libm.so", "libc.so"}
                                                 : std::vector<std::string>{"libstdc++.so"};
  return MakeSmallLibraries(env_, toolchain->host.library_directories, libraries, names);
}

exec::ActionEnd Linker::RunSmall(const Step& step, const SmallLibraries& small, StepRunner::Run run,
                                 exec::ActionObserver* observer) {
  run.observer = observer;
  exec::Action action = step.action;
  action.inputs.insert(action.inputs.end(), small.files.begin(), small.files.end());
  action.argv.push_back(StrCat("-L", kSmallLibraries));
  return runner_.RunCommand(action, step.kind, run);
}

}  // namespace kernix::build
