// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/linker.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/driver_functions.h"
#include "daemon/builder/small_libraries.h"

namespace kernix::build {
namespace {

// Of one link.
constexpr size_t kMostNameBytes = 32 << 10;
constexpr size_t kMostSymbols = 100'000;
constexpr char kNotLinked[] = "kernixd could not run the link";

// What the result of a link imports, and from which libraries.
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

// What the result of a link imports.
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

// One link. Lives as long as one of its commands runs: each `done` holds a reference.
class Linker::Link : public std::enable_shared_from_this<Link> {
 public:
  Link(Linker& linker, Step step, StepRunner::Run run, std::vector<std::string> names)
      : linker_(linker),
        step_(std::move(step)),
        run_(std::move(run)),
        names_(std::move(names)),
        has_archives_(!NamesNoLibrary(step_.action)),
        muted_(run_.observer),
        quiet_(run_.observer) {}

  void Start() {
    if (run_.mode == CompileMode::kWhole || !MakeSmall()) return RunWhole();
    RunSmall(muted_, [](Link& self, Result result) { self.OnLinkedSmall(std::move(result)); });
  }

 private:
  using Result = absl::StatusOr<exec::ActionResult>;
  using Ended = void (*)(Link& self, Result result);

  void RunCommand(const exec::Action& action, StepObserver* observer, Ended done) {
    linker_.runner_.RunCommand(
        action, {.askers = run_.askers,
                 .observer = observer,
                 .cancellation = run_.cancellation,
                 .done = [self = shared_from_this(), done](Result result) { done(*self, std::move(result)); }});
  }

  // For what goes on after a command.
  template <typename Next>
  void GoOn(Next next) {
    const absl::Status started = CatchExceptions(kNotLinked, [&] {
      next();
      return absl::OkStatus();
    });
    if (!started.ok()) run_.done(started);
  }

  void RunWhole() {
    RunCommand(step_.action, run_.observer, [](Link& self, Result result) { self.OnLinkedWhole(std::move(result)); });
  }

  bool MakeSmall() {
    if (run_.toolchain == nullptr || run_.toolchain->described != nullptr) return false;  // builders have the libraries
    const std::vector<std::string> libraries = has_archives_
                                                   ? std::vector<std::string>{"libstdc++.so"}
                                                   : std::vector<std::string>{"libstdc++.so", "libm.so", "libc.so"};
    auto small = MakeSmallLibraries(linker_.env_, run_.toolchain->host.library_directories, libraries, names_);
    if (!small.ok()) return false;
    small_ = *std::move(small);
    return true;
  }

  void RunSmall(StepObserver& observer, Ended done) {
    exec::Action action = step_.action;
    action.inputs.insert(action.inputs.end(), small_.files.begin(), small_.files.end());
    action.argv.push_back(StrCat("-L", kSmallLibraries));
    RunCommand(action, &observer, done);
  }

  void OnLinkedSmall(Result result) {
    const absl::Status good = CatchExceptions(kNotLinked, [&]() -> absl::Status {
      KERNIX_ASSIGN_OR_RETURN(imported_, ImportedBy(step_, result));
      return FoundAll(imported_, small_) ? absl::OkStatus() : absl::InternalError("it needs the whole libraries");
    });
    if (!good.ok()) {
      Log(LogLevel::kDebug, "small_libraries_failed",
          {{"reason", good.message()},
           {"output", result.ok() ? result->output : std::string(result.status().message())}});
      return GoOn([this] { RunWhole(); });
    }
    EndWithStubs(std::move(result));
  }

  void OnLinkedWhole(Result result) {
    const absl::Status good = CatchExceptions(kNotLinked, [&]() -> absl::Status {
      KERNIX_ASSIGN_OR_RETURN(imported_, ImportedBy(step_, result));
      return run_.mode == CompileMode::kWhole && MakeSmall() ? absl::OkStatus()
                                                             : absl::NotFoundError("nothing to compare");
    });
    whole_ = std::move(result);
    good.ok() ? LinkAgain() : EndWithWhole();
  }

  // Links once more, for the bytes of the other modes.
  void LinkAgain() {
    const absl::Status started = CatchExceptions(kNotLinked, [&] {
      RunSmall(quiet_, [](Link& self, Result again) { self.OnLinkedAgain(std::move(again)); });
      return absl::OkStatus();
    });
    if (!started.ok()) EndWithWhole();
  }

  void OnLinkedAgain(Result again) {
    const absl::Status same = CatchExceptions(kNotLinked, [&]() -> absl::Status {
      KERNIX_ASSIGN_OR_RETURN(const Imported imported, ImportedBy(step_, again));
      if (imported != imported_) return absl::InternalError("the stubs give another library");
      again->output = whole_->output;
      whole_ = std::move(again);
      return absl::OkStatus();
    });
    (void)same;  // else the first result serves
    EndWithWhole();
  }

  void EndWithStubs(Result result) {
    linker_.with_stubs_.Add();
    if (run_.observer != nullptr && !result->output.empty()) run_.observer->OnOutput(result->output);
    run_.done(std::move(result));
  }

  void EndWithWhole() {
    linker_.whole_.Add();
    run_.done(std::move(whole_));
  }

  Linker& linker_;
  const Step step_;
  const StepRunner::Run run_;
  const std::vector<std::string> names_;
  const bool has_archives_;
  MutedStep muted_;
  QuietStep quiet_;
  SmallLibraries small_;
  Result whole_;
  Imported imported_;
};

void Linker::Submit(Step step, StepRunner::Run run) {
  if (run.toolchain != nullptr) step.action = WithDriverFunctions(std::move(step.action), *run.toolchain);
  if (!step.is_plain_link) return runner_.RunCommand(step.action, std::move(run));
  absl::StatusOr<std::vector<std::string>> names = NamesNeeded(step);
  if (!names.ok()) {
    whole_.Add();
    return runner_.RunCommand(step.action, std::move(run));
  }
  std::make_shared<Link>(*this, std::move(step), std::move(run), *std::move(names))->Start();
}

void Linker::Register(MetricsRegistry& registry) const {
  constexpr char kName[] = "kernix_plain_links_total";
  constexpr char kHelp[] =
      "Links with libraries of the toolchain alone: with stubs of those that the compiler names, or with the whole "
      "ones.";
  registry.AddCounter(kName, kHelp, with_stubs_, {{"how", "stubs"}});
  registry.AddCounter(kName, kHelp, whole_, {{"how", "whole"}});
}

}  // namespace kernix::build
