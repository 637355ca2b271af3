// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/linker.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
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
constexpr char kEffect[] = "the first link reads the libraries";  // of what cannot be learned

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
absl::StatusOr<Imported> ImportedBy(const Step& step, const PlanOutputs& outputs) {
  const auto output = outputs.find(step.action.outputs.front());
  if (output == outputs.end()) return absl::NotFoundError("the link has failed");
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(*output->second));
  Imported imported;
  KERNIX_ASSIGN_OR_RETURN(imported.libraries, image.NeededLibraries());
  KERNIX_ASSIGN_OR_RETURN(imported.imports, image.Imports());
  std::sort(imported.imports.begin(), imported.imports.end());
  return imported;
}

absl::StatusOr<Imported> ImportedBy(const Step& step, const absl::StatusOr<exec::ActionResult>& result) {
  KERNIX_RETURN_IF_ERROR(result.status());
  if (result->exit_code != 0) return absl::NotFoundError("the link has failed");
  return ImportedBy(step, result->outputs);
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

// Whether nothing but the compiler's own words names libraries. What CUDA's archives need is not known before the link.
bool NamesNoLibrary(const exec::Action& action) {
  return std::none_of(action.argv.begin(), action.argv.end(),
                      [](const std::string& word) { return word.starts_with("-l"); });
}

// A link of the objects that wait for no other step.
Step LinkOfWhatIsThere(Step step) {
  std::erase_if(step.action.argv, [&](const std::string& word) {
    const std::vector<std::string>& missing = step.inputs_from_steps;
    return std::find(missing.begin(), missing.end(), word) != missing.end();
  });
  step.inputs_from_steps.clear();
  step.is_plain_link = false;
  return step;
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
        muted_(run_.observer),
        quiet_(run_.observer) {}

  void Start() {
    if (run_.take_shortcuts) found_ = linker_.Find(digest_, names_);
    if (found_ == nullptr) return RunWhole();
    RunWithStubs(found_->imported, muted_,
                 [](Link& self, Result result) { self.OnLinkedWithStubs(std::move(result)); });
  }

 private:
  using Result = absl::StatusOr<exec::ActionResult>;

  void RunCommand(const exec::Action& action, StepObserver* observer, void (*done)(Link& self, Result result)) {
    linker_.runner_.RunCommand(
        action, {.user = run_.user,
                 .observer = observer,
                 .cancellation = run_.cancellation,
                 .done = [self = shared_from_this(), done](Result result) { done(*self, std::move(result)); }});
  }

  void RunWhole() {
    RunCommand(step_.action, run_.observer, [](Link& self, Result result) { self.OnLinkedWhole(std::move(result)); });
  }

  void RunWithStubs(const Imported& found, StepObserver& observer, void (*done)(Link& self, Result result)) {
    RunCommand(WithStubs(step_.action, found), &observer, done);
  }

  // Takes the result if it imports nothing but what the stubs stand for.
  void OnLinkedWithStubs(Result result) {
    const absl::Status good = CatchExceptions(kNotLinked, [&]() -> absl::Status {
      KERNIX_ASSIGN_OR_RETURN(const Imported imported, ImportedBy(step_, result));
      return IsPartOf(imported, found_->imported) ? absl::OkStatus() : absl::InternalError("it imports something else");
    });
    if (good.ok()) {
      linker_.with_stubs_.Add();
      if (run_.observer != nullptr && !result->output.empty()) run_.observer->OnOutput(result->output);
      return run_.done(std::move(result));
    }
    const absl::Status started = CatchExceptions(kNotLinked, [&] {
      RunWhole();
      return absl::OkStatus();
    });
    if (!started.ok()) run_.done(started);
  }

  // Links once more, with stubs, unless the link has failed or is one that nothing can be learned from.
  void OnLinkedWhole(Result result) {
    whole_ = std::move(result);
    const absl::Status goes_on = CatchExceptions(kNotLinked, [&]() -> absl::Status {
      KERNIX_ASSIGN_OR_RETURN(imported_, ImportedBy(step_, whole_));
      RunWithStubs(imported_, quiet_, [](Link& self, Result again) { self.OnLinkedAgain(std::move(again)); });
      return absl::OkStatus();
    });
    if (!goes_on.ok()) EndWithWhole();
  }

  void OnLinkedAgain(Result again) {
    const absl::Status same = CatchExceptions(kNotLinked, [&]() -> absl::Status {
      KERNIX_ASSIGN_OR_RETURN(const Imported imported, ImportedBy(step_, again));
      if (imported != imported_) return absl::InternalError("the stubs give another library");
      again->output = whole_->output;
      whole_ = std::move(again);
      linker_.Keep(digest_, {names_, std::move(imported_)});
      return absl::OkStatus();
    });
    (void)same;  // else the first result serves
    EndWithWhole();
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
  MutedStep muted_;
  QuietStep quiet_;
  FoundPtr found_;
  Result whole_;
  Imported imported_;
};

// Learns what a link will find.
class Linker::Ahead : public Learning::Lesson, public std::enable_shared_from_this<Ahead> {
 public:
  Ahead(std::unique_ptr<Learning::Place> place, Linker& linker, Step step, Digest link, std::vector<std::string> names,
        UserId user)
      : Learning::Lesson(std::move(place)),
        linker_(linker),
        step_(std::move(step)),
        link_(link),
        names_(std::move(names)),
        user_(user) {}

  void Start() override {
    if (linker_.Find(link_, names_) != nullptr) return;
    (void)CatchExceptions("not learned", [&] {
      const auto self = shared_from_this();
      Run(
          user_, {step_}, [self](const PlanEnd& end) { return self->OnLinked(end); },
          [self](const absl::Status& status) { self->linker_.learning_.NoteFailure(self->link_, status, kEffect); });
      return absl::OkStatus();
    });
  }

 private:
  absl::Status OnLinked(const PlanEnd& end) {
    KERNIX_ASSIGN_OR_RETURN(Imported imported, ImportedBy(step_, end.outputs));
    linker_.Keep(link_, {names_, std::move(imported)});
    return absl::OkStatus();
  }

  Linker& linker_;
  const Step step_;
  const Digest link_;
  const std::vector<std::string> names_;
  const UserId user_;
};

void Linker::Submit(const Step& step, StepRunner::Run run) {
  absl::StatusOr<std::vector<std::string>> names = NamesNeeded(step);
  if (!names.ok()) {
    whole_.Add();
    return runner_.RunCommand(step.action, std::move(run));
  }
  std::make_shared<Link>(*this, step, std::move(run), *std::move(names))->Start();
}

void Linker::LearnAhead(const Step& step, UserId user) {
  const Digest link = DigestOfLink(step.action);
  if (!NamesNoLibrary(step.action) || !learning_.MayLearn(link)) return;
  const Step ahead = LinkOfWhatIsThere(step);
  absl::StatusOr<std::vector<std::string>> names = NamesNeeded(ahead);
  if (!names.ok() || names->empty() || Find(link, *names) != nullptr) return;
  std::unique_ptr<Learning::Place> place = learning_.TakePlace();
  if (place == nullptr) return;
  Learning::Start(std::make_shared<Ahead>(std::move(place), *this, ahead, link, *std::move(names), user));
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
      "Links with libraries of the toolchain alone: with stubs of those that the compiler names, or with all of them.";
  registry.AddCounter(kName, kHelp, with_stubs_, {{"how", "stubs"}});
  registry.AddCounter(kName, kHelp, whole_, {{"how", "whole"}});
}

}  // namespace kernix::build
