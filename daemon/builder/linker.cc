// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/linker.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/small_libraries.h"
#include "daemon/plan/link_stub.h"

namespace kernix::build {
namespace {

// Limits of what is remembered: some 20 MB, if somebody tries.
constexpr size_t kMostNameBytes = 32 << 10;  // of one link
constexpr size_t kMostFound = 8;             // by links with the same words
constexpr size_t kMostLinks = 32;            // with different words
constexpr size_t kMostSymbols = 100'000;     // that are read of a link's objects
// The part of glibc that is no shared library, with atexit(), which all objects of CUDA need.
constexpr char kStaticPart[] = "-l:libc_nonshared.a";
constexpr char kNotLinked[] = "kernixd could not run the link";

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

bool IsPartOf(const Imported& part, const Imported& all) {
  const auto is_known = [&](const std::string& library) {
    return std::find(all.libraries.begin(), all.libraries.end(), library) != all.libraries.end();
  };
  return std::all_of(part.libraries.begin(), part.libraries.end(), is_known) &&
         std::includes(all.imports.begin(), all.imports.end(), part.imports.begin(), part.imports.end());
}

// The step's command, with stubs of `found` in place of the libraries.
exec::Action WithStubs(exec::Action action, const Imported& found) {
  action.argv.emplace_back("-nodefaultlibs");
  action.argv.emplace_back(kStaticPart);
  for (const std::string& library : found.libraries) {
    const std::string stub = StrCat("kernix-stubs/", library);
    action.inputs.push_back(exec::MakeInput(stub, LinkStub(library, found.imports)));
    action.argv.push_back(stub);
  }
  return action;
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

Digest DigestOfLink(const exec::Action& action) {
  CanonicalHasher hasher("kernix-link");
  hasher.Field("tools", action.salt);
  for (const std::string& word : action.argv) hasher.Field("word", word);
  return hasher.Finish();
}

}  // namespace

// One link. Lives as long as one of its commands runs: each `done` holds a reference.
class Linker::Link : public std::enable_shared_from_this<Link> {
 public:
  Link(Linker& linker, Step step, StepRunner::Run run, std::vector<std::string> names)
      : linker_(linker),
        step_(std::move(step)),
        run_(std::move(run)),
        digest_(DigestOfLink(step_.action)),
        names_(std::move(names)),
        has_archives_(!NamesNoLibrary(step_.action)),
        muted_(run_.observer),
        quiet_(run_.observer) {}

  void Start() {
    if (!run_.take_shortcuts) return RunWhole();
    if (has_archives_) found_ = linker_.Find(digest_, names_);
    if (found_ != nullptr) {
      return RunWithStubs(found_->imported, muted_,
                          [](Link& self, Result result) { self.OnLinkedWithStubs(std::move(result)); });
    }
    if (!MakeSmall()) return RunWhole();
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

  void RunWithStubs(const Imported& found, StepObserver& observer, Ended done) {
    RunCommand(WithStubs(step_.action, found), &observer, done);
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

  // Takes the result if it imports nothing but what the stubs stand for.
  void OnLinkedWithStubs(Result result) {
    const absl::Status good = CatchExceptions(kNotLinked, [&]() -> absl::Status {
      KERNIX_ASSIGN_OR_RETURN(const Imported imported, ImportedBy(step_, result));
      return IsPartOf(imported, found_->imported) ? absl::OkStatus() : absl::InternalError("it imports something else");
    });
    if (!good.ok()) return GoOn([this] { RunWhole(); });
    EndWithStubs(std::move(result));
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
    if (!has_archives_) return EndWithStubs(std::move(result));
    LinkAgain(std::move(result));
  }

  void OnLinkedWhole(Result result) {
    const absl::Status good = CatchExceptions(kNotLinked, [&]() -> absl::Status {
      KERNIX_ASSIGN_OR_RETURN(imported_, ImportedBy(step_, result));
      const bool is_forced = !run_.take_shortcuts && MakeSmall();
      return has_archives_ || is_forced ? absl::OkStatus() : absl::NotFoundError("there is no link with stubs");
    });
    whole_ = std::move(result);
    good.ok() ? LinkAgain(std::move(whole_)) : EndWithWhole();
  }

  // Links once more, with stubs, for the same bytes as when kernixd knows what is imported.
  void LinkAgain(Result result) {
    whole_ = std::move(result);
    const absl::Status started = CatchExceptions(kNotLinked, [&] {
      const Ended ended = [](Link& self, Result again) { self.OnLinkedAgain(std::move(again)); };
      has_archives_ ? RunWithStubs(imported_, quiet_, ended) : RunSmall(quiet_, ended);
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
      if (has_archives_) linker_.Keep(digest_, {names_, std::move(imported_)});
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
  const Digest digest_;
  const std::vector<std::string> names_;
  const bool has_archives_;
  MutedStep muted_;
  QuietStep quiet_;
  FoundPtr found_;
  SmallLibraries small_;
  Result whole_;
  Imported imported_;
};

void Linker::Submit(const Step& step, StepRunner::Run run) {
  absl::StatusOr<std::vector<std::string>> names = NamesNeeded(step);
  if (!names.ok()) {
    whole_.Add();
    return runner_.RunCommand(step.action, std::move(run));
  }
  std::make_shared<Link>(*this, step, std::move(run), *std::move(names))->Start();
}

Linker::FoundPtr Linker::Find(const Digest& link, const std::vector<std::string>& names) {
  const MutexLock lock(mutex_);
  const auto links = found_.find(link);
  if (links == found_.end()) return nullptr;
  const auto found = std::find_if(links->second.begin(), links->second.end(), [&](const FoundPtr& one) {
    return std::includes(one->names.begin(), one->names.end(), names.begin(), names.end());
  });
  return found == links->second.end() ? nullptr : *found;
}

void Linker::Keep(const Digest& link, Found found) {
  const MutexLock lock(mutex_);
  if (found_.size() >= kMostLinks && !found_.contains(link)) found_.clear();
  std::vector<FoundPtr>& all = found_[link];
  if (all.size() >= kMostFound) all.erase(all.begin());
  all.push_back(std::make_shared<const Found>(std::move(found)));
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
