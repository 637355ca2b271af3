// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/compiled_preambles.h"

#include <utility>
#include <vector>

#include "common/base/exceptions.h"
#include "daemon/builder/dependency_file.h"

namespace kernix::build {
namespace {

constexpr size_t kMostRemembered = 1024;
constexpr int kMostMisfits = 3;
constexpr char kHeaderDigest[] = "header";  // its name among what the step cache keeps
constexpr char kEffect[] = "the host compiler reads the #includes of these kernels each time";

void Mount(exec::InputTreePtr tree, exec::Action& action) {
  std::vector<exec::MountedTree> trees;
  if (action.trees != nullptr) trees = *action.trees;
  trees.push_back({kCompiledPreambleFolder, /*digest=*/{}, std::move(tree)});  // nobody asks for the action's digest
  action.trees = std::make_shared<const std::vector<exec::MountedTree>>(std::move(trees));
}

}  // namespace

// The callbacks of plans hold references to it.
class CompiledPreambles::Lesson : public Learning::Lesson, public std::enable_shared_from_this<Lesson> {
 public:
  Lesson(std::unique_ptr<Learning::Place> place, CompiledPreambles& preambles, const Prepared& prepared,
         exec::Content object, toolchain::ToolchainPtr toolchain, UserId user)
      : Learning::Lesson(std::move(place)),
        preambles_(preambles),
        start_(prepared.start),
        split_(*prepared.to_learn),
        object_(std::move(object)),
        toolchain_(std::move(toolchain)),
        user_(user) {}

  void Start() override {
    (void)CatchExceptions("not learned", [&] {
      if (!IsToBeLearned()) return absl::OkStatus();
      std::vector<Step> steps = {split_.preamble};
      if (split_.preprocess != nullptr) steps.push_back(*split_.preprocess);
      Run(std::move(steps), &Lesson::OnPreamble);
      return absl::OkStatus();
    });
  }

 private:
  bool IsToBeLearned() {
    std::vector<std::string> files;
    return preambles_.learning_.MayLearn(StepCache::KeyOf(split_.preamble, *toolchain_)) &&
           preambles_.Find(split_.preamble, *toolchain_, files) == nullptr;
  }

  void Run(std::vector<Step> steps, absl::Status (Lesson::*next)(const PlanEnd&)) {
    Learning::Lesson::Run(
        user_, std::move(steps),
        [self = shared_from_this(), next](const PlanEnd& end) { return (self.get()->*next)(end); },
        [self = shared_from_this()](const absl::Status& status) {
          self->OnFailure(StepCache::KeyOf(self->split_.preamble, *self->toolchain_), status);
        });
  }

  // The header is made of the preamble alone. What follows it in this unit says nothing of other users' units.
  void OnFailure(const Digest& preamble, const absl::Status& status) {
    if (header_ == nullptr) return preambles_.learning_.NoteFailure(preamble, status, kEffect);
    preambles_.NoteMisfit(preamble, user_);
  }

  // Compiles what follows, to compare the object with that of the whole compile.
  absl::Status OnPreamble(const PlanEnd& end) {
    if (split_.preprocess != nullptr && !MayBeCompiled(*end.outputs.at(split_.preprocess->action.outputs.front()))) {
      return absl::FailedPreconditionError("a directive of theirs may change what follows");
    }
    const exec::Content& header = end.outputs.at(CompiledHeaderOf(split_.preamble));
    if (header->size() > kMostBytes) return absl::FailedPreconditionError("the precompiled header is too large");
    header_ = header;
    digest_ = DigestOf(*header);
    const std::string& files = split_.preamble.reuse->dependencies.front();
    read_.outputs[files] = end.outputs.at(files);
    read_.outputs[kHeaderDigest] = exec::MakeContent(digest_.Hex());
    tree_ = std::make_shared<exec::InputTree>(CompiledPreambleFiles(header));
    Step rest = split_.preamble;
    rest.reuse.reset();
    rest.action = split_.rest;
    rest.action.step = split_.preamble.action.step;
    Mount(tree_, rest.action);
    Run({rest}, &Lesson::OnRest);
    return absl::OkStatus();
  }

  absl::Status OnRest(const PlanEnd& end) {
    if (*end.outputs.at(split_.rest.outputs.front()) != *object_) {
      return absl::FailedPreconditionError("the object is not that of a whole compile");
    }
    preambles_.trees_.Keep(digest_, tree_, header_->size());
    preambles_.cache_.Keep(StepCache::KeyOf(split_.preamble, *toolchain_), split_.preamble, *toolchain_, start_, read_);
    std::vector<std::string> files;
    if (preambles_.Find(split_.preamble, *toolchain_, files) != nullptr) return absl::OkStatus();
    preambles_.trees_.Drop(digest_);
    return absl::UnavailableError("a header may have changed meanwhile");
  }

  CompiledPreambles& preambles_;
  const BuildStart start_;
  const SplitCompile split_;
  const exec::Content object_;
  const toolchain::ToolchainPtr toolchain_;
  const UserId user_;
  exec::ActionResult read_;  // which files the preamble was made from
  exec::Content header_;     // null: not made yet
  Digest digest_;
  exec::InputTreePtr tree_;
};

CompiledPreambles::Prepared CompiledPreambles::Prepare(std::optional<SplitCompile> split,
                                                       const std::string& dependencies,
                                                       const toolchain::Toolchain& toolchain, UserId user) {
  Prepared prepared{.faster = nullptr, .to_learn = nullptr, .start = cache_.Now()};
  const bool has_headers = toolchain.host.kind == toolchain::HostCompilerKind::kGcc;
  const Digest key = split ? StepCache::KeyOf(split->preamble, toolchain) : Digest();
  if (!has_headers || !split || !learning_.MayLearn(key) || IsMisfit(key, user)) {
    none_.Add();
    return prepared;
  }
  FasterAction faster{.action = {}, .dependencies = dependencies, .files = {}};
  if (exec::InputTreePtr tree = Find(split->preamble, toolchain, faster.files); tree != nullptr) {
    used_.Add();
    faster.action = std::move(split->rest);
    Mount(std::move(tree), faster.action);
    prepared.faster = std::make_shared<const FasterAction>(std::move(faster));
    return prepared;
  }
  not_known_.Add();
  if (learning_.WasAskedFor(key)) prepared.to_learn = std::make_shared<const SplitCompile>(*std::move(split));
  return prepared;
}

exec::InputTreePtr CompiledPreambles::Find(const Step& preamble, const toolchain::Toolchain& toolchain,
                                           std::vector<std::string>& files) {
  const std::optional<exec::ActionResult> read = cache_.Find(StepCache::KeyOf(preamble, toolchain), toolchain);
  if (!read) return nullptr;  // or a header has changed
  files = ParseDependencyFile(*read->outputs.at(preamble.reuse->dependencies.front()));
  const absl::StatusOr<Digest> digest = Digest::FromHex(*read->outputs.at(kHeaderDigest));
  return digest.ok() ? trees_.Find(*digest) : nullptr;
}

Learning::LessonPtr CompiledPreambles::PrepareLesson(const Prepared& prepared, exec::Content object,
                                                     toolchain::ToolchainPtr toolchain, UserId user) {
  if (prepared.to_learn == nullptr) return nullptr;
  std::unique_ptr<Learning::Place> place = learning_.TakePlace(*toolchain);
  if (place == nullptr) return nullptr;
  learning_.Forget(StepCache::KeyOf(prepared.to_learn->preamble, *toolchain));
  return std::make_shared<Lesson>(std::move(place), *this, prepared, std::move(object), std::move(toolchain), user);
}

bool CompiledPreambles::IsMisfit(const Digest& preamble, UserId user) {
  const MutexLock lock(mutex_);
  const auto found = misfits_.find({preamble, user});
  return found != misfits_.end() && found->second >= kMostMisfits;
}

void CompiledPreambles::NoteMisfit(const Digest& preamble, UserId user) {
  const MutexLock lock(mutex_);
  if (misfits_.size() >= kMostRemembered) misfits_.clear();
  ++misfits_[{preamble, user}];
}

void CompiledPreambles::Register(MetricsRegistry& registry) const {
  constexpr char kName[] = "kernix_compiled_preambles_total";
  constexpr char kHelp[] = "Compiles by the host compiler: with a compiled preamble, or without one, and why.";
  registry.AddCounter(kName, kHelp, used_, {{"how", "compiled"}});
  registry.AddCounter(kName, kHelp, not_known_, {{"how", "not_known_yet"}});
  registry.AddCounter(kName, kHelp, none_, {{"how", "none"}});
}

}  // namespace kernix::build
