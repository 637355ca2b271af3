// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/remote_executor.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/exec/action_digest.h"
#include "daemon/remote/connection.h"

namespace kernix::remote {
namespace {

// Reads one folder with all that is in it.
class Walk {
 public:
  Walk(Env& env, std::string root) : env_(env), root_(std::move(root)) {}

  absl::StatusOr<ShippedFolder> Run() {
    KERNIX_RETURN_IF_ERROR(AddFolder(""));
    folder_.digest = tree_.Write(folder_.messages);
    return std::move(folder_);
  }

 private:
  std::string FullPath(const std::string& path) const { return path.empty() ? root_ : JoinPath(root_, path); }

  absl::Status AddFolder(const std::string& path) {
    KERNIX_RETURN_IF_ERROR(Watch(env_, FullPath(path), folder_.seen));
    KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, env_.ListDirectory(FullPath(path)));
    for (const std::string& name : names) {
      KERNIX_RETURN_IF_ERROR(AddEntry(path.empty() ? name : JoinPath(path, name)));
    }
    return absl::OkStatus();
  }

  absl::Status AddEntry(const std::string& path) {
    KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env_.Stat(FullPath(path), /*follow=*/false));
    switch (info.type) {
      case FileType::kDirectory:
        return AddFolder(path);
      case FileType::kRegular:
        return AddFile(path, info.mode);
      case FileType::kSymlink:
        return AddLink(path);
      case FileType::kOther:
        break;
    }
    return absl::FailedPreconditionError(StrCat(FullPath(path), " is neither a file nor a folder"));
  }

  absl::Status AddFile(const std::string& path, mode_t mode) {
    KERNIX_RETURN_IF_ERROR(Watch(env_, FullPath(path), folder_.seen));
    KERNIX_ASSIGN_OR_RETURN(const exec::BlobDigest digest, DigestOf(FullPath(path)));
    folder_.files.emplace(digest, FullPath(path));
    tree_.AddFile(path, digest, (mode & 0111) != 0);
    return absl::OkStatus();
  }

  absl::StatusOr<exec::BlobDigest> DigestOf(const std::string& path) const {
    KERNIX_ASSIGN_OR_RETURN(const std::string real, env_.RealPath(path));
    KERNIX_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, env_.OpenFile(real));
    KERNIX_ASSIGN_OR_RETURN(const FileInfo info, file->Stat());
    KERNIX_ASSIGN_OR_RETURN(const Digest hash, DigestOfFile(*file));
    return exec::BlobDigest{hash, info.size};
  }

  absl::Status AddLink(const std::string& path) {
    KERNIX_ASSIGN_OR_RETURN(std::string target, env_.ReadLink(FullPath(path)));
    const std::string leads_to = NormalizePath(JoinPath(Dirname(FullPath(path)), target));
    if (target.front() != '/' && IsBelow(leads_to, root_)) {
      folder_.seen.push_back(StateOf(env_, FullPath(path)));
      tree_.AddLink(path, std::move(target));
      return absl::OkStatus();
    }
    KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env_.Stat(FullPath(path)));
    if (info.type == FileType::kRegular) return AddFile(path, info.mode);
    return absl::FailedPreconditionError(StrCat(FullPath(path), " leads out of the folder, to ", leads_to));
  }

  Env& env_;
  const std::string root_;
  ShippedFolder folder_;
  exec::MerkleTree tree_;
};

}  // namespace

bool ShippedFolders::Ships(const std::string& path) const {
  return std::any_of(folders_.begin(), folders_.end(),
                     [&](const std::string& folder) { return path == folder || IsBelow(path, folder); });
}

absl::StatusOr<std::shared_ptr<const ShippedFolder>> ShippedFolders::Get(const std::string& path) {
  // While one thread reads a folder, others that need it wait.
  const MutexLock lock(mutex_);
  std::shared_ptr<const ShippedFolder>& known = known_[path];
  if (known != nullptr && Unchanged(env_, known->seen)) return known;
  KERNIX_ASSIGN_OR_RETURN(ShippedFolder folder, Walk(env_, path).Run());
  known = std::make_shared<const ShippedFolder>(std::move(folder));
  return known;
}

namespace {

using Loaders = std::map<exec::BlobDigest, std::function<absl::StatusOr<exec::Content>()>>;

// How often what an action reads is sent to an engine that says that it lacks a part of it.
constexpr int kMostSends = 3;

// The longest time of a step without a limit.
constexpr Duration kLongestStep = std::chrono::hours(24);

bool NamesRoot(std::string_view word) { return absl::StrContains(ToAbsl(word), ToAbsl(exec::kRootPlaceholder)); }

absl::Status RunsOnlyHere(const exec::Action& action, std::string_view why) {
  return absl::FailedPreconditionError(StrCat("step \"", action.step, "\" runs only on this machine: ", why));
}

exec::Action WithCommandOf(const exec::Action& action) {
  exec::Action plain = action;
  plain.argv = exec::LocalCommand(action);
  plain.environment = exec::LocalEnvironment(action);
  return plain;
}

void AddMessages(const std::map<exec::BlobDigest, std::string>& messages, Loaders& loaders) {
  for (const auto& [digest, message] : messages) {
    loaders[digest] = [&message = message] { return exec::MakeContent(message); };
  }
}

void AddInputs(const exec::Action& action, Loaders& loaders) {
  for (const exec::InputFile& input : action.inputs) {
    loaders[input.digest] = [&input] { return input.content; };
  }
  if (action.trees == nullptr) return;
  for (const exec::MountedTree& mounted : *action.trees) {
    for (const exec::InputFile& file : mounted.tree->Files()) {
      loaders[file.digest] = [tree = mounted.tree, file] { return tree->Load(file); };
    }
  }
}

absl::StatusOr<exec::Content> LoadFile(Env& env, const std::string& path, const exec::BlobDigest& digest) {
  KERNIX_ASSIGN_OR_RETURN(std::string bytes, env.ReadFile(path));
  if (exec::BlobDigestOf(bytes) != digest) return absl::AbortedError(StrCat(path, " has just changed"));
  return exec::MakeContent(std::move(bytes));
}

void AddFolder(Env& env, const ShippedFolder& folder, Loaders& loaders) {
  AddMessages(folder.messages, loaders);
  for (const auto& [digest, path] : folder.files) {
    loaders[digest] = [&env, &path = path, digest = digest] { return LoadFile(env, path, digest); };
  }
}

absl::Status Send(Upstream& upstream, const Loaders& loaders, Cancellation* cancellation) {
  std::set<exec::BlobDigest> digests;
  for (const auto& [digest, load] : loaders) digests.insert(digest);
  return upstream.Write(
      std::move(digests), [&](const exec::BlobDigest& digest) { return loaders.at(digest)(); }, cancellation);
}

using ShippedFolderPtr = std::shared_ptr<const ShippedFolder>;

// An action as the engine runs it.
struct Prepared {
  exec::ActionMessages messages;
  std::vector<ShippedFolderPtr> folders;
};

// Tells an observer that may be null, each thing once and in order.
class Teller {
 public:
  Teller(const exec::Action& action, exec::ActionObserver* observer) : action_(action), observer_(observer) {}

  void OnStage(ExecutionStage stage) {
    if (stage == ExecutionStage::kRunning) {
      Started();
    } else if (observer_ != nullptr && !started_ && !std::exchange(queued_, true)) {
      observer_->OnQueued(action_, 0);
    }
  }
  void Started() {
    if (!std::exchange(started_, true) && observer_ != nullptr) observer_->OnStarted(action_);
  }
  void Printed(const std::string& text) {
    if (observer_ != nullptr && !text.empty()) observer_->OnOutput(text);
  }

 private:
  const exec::Action& action_;
  exec::ActionObserver* const observer_;
  bool queued_ = false;
  bool started_ = false;
};

absl::Status Failure(const exec::Action& action, const exec::ActionResult& result, std::string_view what) {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::RESOURCE);
  detail.set_message(StrCat("step \"", action.step, "\": ", Basename(exec::LocalCommand(action).front()), " ", what));
  detail.set_compiler_output(result.output);
  detail.set_command(absl::StrJoin(exec::LocalCommand(action), " "));
  detail.set_exit_code(result.exit_code);
  return MakeError(std::move(detail));
}

absl::Status CheckEnd(const exec::Action& action, const Execution& execution, const exec::ActionResult& result) {
  if (execution.timed_out) return Failure(action, result, "did not end within the time limit of the engine");
  if (result.exit_code == 128 + SIGKILL) {
    return Failure(action, result, "was killed on the worker, most likely because it ran out of memory");
  }
  if (result.exit_code != 0) return absl::OkStatus();
  for (const std::string& path : action.outputs) {
    if (result.outputs.contains(path)) continue;
    return MakeError(v1::ErrorDetail::INTERNAL,
                     StrCat("step \"", action.step, "\" succeeded without writing \"", path, "\""));
  }
  return absl::OkStatus();
}

// Those of `files` that the action names, in the order of `paths`.
std::vector<exec::BlobDigest> PickOutputs(const exec::Action& action, const std::vector<OutputFile>& files,
                                          std::vector<std::string>& paths) {
  std::vector<exec::BlobDigest> digests;
  for (const OutputFile& file : files) {
    if (std::find(action.outputs.begin(), action.outputs.end(), file.path) == action.outputs.end()) continue;
    paths.push_back(file.path);
    digests.push_back(file.digest);
  }
  return digests;
}

// Remembers for a while that the engine has a shipped folder, which may be thousands of files. Thread-safe.
class SentFolders {
 public:
  explicit SentFolders(Env& env) : env_(env) {}

  bool Has(const ShippedFolder& folder) {
    const MutexLock lock(mutex_);
    const auto sent = sent_.find(folder.digest);
    return sent != sent_.end() && env_.Now() - sent->second < kTrusted;
  }
  void Add(const ShippedFolder& folder) {
    const MutexLock lock(mutex_);
    sent_[folder.digest] = env_.Now();
  }
  void Forget() {
    const MutexLock lock(mutex_);
    sent_.clear();
  }

 private:
  static constexpr Duration kTrusted = std::chrono::minutes(1);

  Env& env_;
  Mutex mutex_;
  std::map<exec::BlobDigest, MonotonicTime> sent_ ABSL_GUARDED_BY(mutex_);
};

// Engines' messages when they lack a part of an action. `trusted`: they were not asked whether they have all of it.
bool MayLackInputs(const absl::Status& status, bool trusted) {
  if (absl::IsFailedPrecondition(status)) return true;
  if (absl::IsNotFound(status)) return !IsNoWorker(status);
  return trusted && absl::IsInternal(status);
}

// Thread-safe.
class Runner {
 public:
  Runner(Env& env, Upstream& upstream, RemoteExecutorOptions options)
      : env_(env),
        upstream_(upstream),
        options_(std::move(options)),
        shipped_(env, options_.shipped_folders),
        sent_(env) {}

  absl::StatusOr<exec::ActionResult> Run(const exec::Action& action, exec::ActionObserver* observer,
                                         Cancellation* cancellation) {
    KERNIX_RETURN_IF_ERROR(CheckRunsRemotely(action));
    KERNIX_RETURN_IF_ERROR(CheckPause(action));
    KERNIX_ASSIGN_OR_RETURN(const Prepared prepared, Prepare(action, cancellation));
    Teller teller(action, observer);
    const MonotonicTime begin = env_.Now();
    KERNIX_ASSIGN_OR_RETURN(const Execution execution, SendAndExecute(action, prepared, teller, cancellation));
    KERNIX_RETURN_IF_ERROR(CheckRan(action, execution));
    teller.Started();
    KERNIX_ASSIGN_OR_RETURN(exec::ActionResult result, Fetch(action, execution, cancellation));
    result.wall = std::chrono::duration_cast<Duration>(env_.Now() - begin);
    teller.Printed(result.output);
    KERNIX_RETURN_IF_ERROR(CheckEnd(action, execution, result));
    return result;
  }

 private:
  // It may have waited here since before the pause.
  absl::Status CheckPause(const exec::Action& action) const {
    if (options_.pause == nullptr || action.needs_worker) return absl::OkStatus();
    const std::optional<std::string> why = options_.pause->why();
    return why ? RunsOnlyHere(action, *why) : absl::OkStatus();
  }

  absl::StatusOr<Prepared> Prepare(const exec::Action& action, Cancellation* cancellation) {
    Prepared prepared;
    exec::EngineForm form = {.platform = options_.platform};
    for (const exec::InputLink& link : action.links) {
      if (!shipped_.Ships(link.target)) {
        form.links.push_back(link);
        continue;
      }
      KERNIX_ASSIGN_OR_RETURN(ShippedFolderPtr folder, shipped_.Get(link.target));
      form.folders[link.path] = folder->digest;
      prepared.folders.push_back(std::move(folder));
    }
    KERNIX_RETURN_IF_ERROR(CheckEngine(action, form, cancellation));
    prepared.messages = exec::MessagesOf(WithCommandOf(action), form);
    return prepared;
  }

  absl::Status CheckEngine(const exec::Action& action, const exec::EngineForm& form, Cancellation* cancellation) {
    KERNIX_ASSIGN_OR_RETURN(const UpstreamFacts facts, upstream_.Facts(cancellation));
    const std::string engine = StrCat("the engine at ", upstream_.address());
    if (!facts.executes) return RunsOnlyHere(action, StrCat(engine, " runs no actions: it is only a cache"));
    if (form.links.empty() || facts.takes_absolute_links) return absl::OkStatus();
    return RunsOnlyHere(action,
                        StrCat(engine, " takes no links to its workers' tools, such as ", form.links.front().target));
  }

  absl::Status CheckRan(const exec::Action& action, const Execution& execution) const {
    if (!options_.run_anew || !execution.from_cache) return absl::OkStatus();
    return MakeError(v1::ErrorDetail::INTERNAL,
                     StrCat("the engine at ", upstream_.address(), " has answered step \"", action.step,
                            "\" from its own cache, which upstream.trusted_keys forbids (skip_cache_lookup)"));
  }

  // An engine may have dropped what was sent a minute or a moment ago: then it is asked anew what it lacks, and gets
  // that. Not if it has taken long to find that out.
  absl::StatusOr<Execution> SendAndExecute(const exec::Action& action, const Prepared& prepared, Teller& teller,
                                           Cancellation* cancellation) {
    for (int sends = 1;; ++sends) {
      const bool trusted = std::any_of(prepared.folders.begin(), prepared.folders.end(),
                                       [&](const ShippedFolderPtr& folder) { return sent_.Has(*folder); });
      KERNIX_RETURN_IF_ERROR(SendAll(action, prepared, cancellation));
      const MonotonicTime begin = env_.Now();
      absl::StatusOr<Execution> execution = Execute(action, prepared.messages, teller, cancellation);
      if (execution.ok() || !MayLackInputs(execution.status(), trusted) || sends == kMostSends) return execution;
      if (env_.Now() - begin > upstream_.timeout()) return execution;
      sent_.Forget();
      Pause(PauseBeforeRetry(sends), cancellation);  // if that fires, the engine is not asked
    }
  }

  absl::Status SendAll(const exec::Action& action, const Prepared& prepared, Cancellation* cancellation) {
    Loaders loaders;
    AddMessages(prepared.messages.messages, loaders);
    AddInputs(action, loaders);
    for (const ShippedFolderPtr& folder : prepared.folders) {
      if (!sent_.Has(*folder)) AddFolder(env_, *folder, loaders);
    }
    KERNIX_RETURN_IF_ERROR(Send(upstream_, loaders, cancellation));
    for (const ShippedFolderPtr& folder : prepared.folders) {
      if (!sent_.Has(*folder)) sent_.Add(*folder);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Execution> Execute(const exec::Action& action, const exec::ActionMessages& messages, Teller& teller,
                                    Cancellation* cancellation) const {
    const Duration step = action.timeout.count() > 0 ? action.timeout : kLongestStep;
    ExecuteOptions options = {.skip_cache_lookup = options_.run_anew,
                              .time_limit = options_.queue_limit + step,
                              .queue_limit = options_.queue_limit,
                              .on_stage = [&](ExecutionStage stage) { teller.OnStage(stage); }};
    absl::StatusOr<Execution> execution = upstream_.Execute(messages.action, options, cancellation);
    if (!execution.ok() || !execution->from_cache || execution->exit_code == 0) return execution;
    // Some engines keep failures. The workers may have been mended since.
    options.skip_cache_lookup = true;
    return upstream_.Execute(messages.action, options, cancellation);
  }

  absl::StatusOr<exec::ActionResult> Fetch(const exec::Action& action, const Execution& execution,
                                           Cancellation* cancellation) const {
    std::vector<std::string> paths;
    std::vector<exec::BlobDigest> digests = PickOutputs(action, execution.files, paths);
    for (const auto& printed : {execution.stdout_digest, execution.stderr_digest}) {
      if (printed) digests.push_back(*printed);
    }
    const uint64_t limit =
        options_.max_output_bytes > 0 ? options_.max_output_bytes : std::numeric_limits<int64_t>::max();
    KERNIX_ASSIGN_OR_RETURN(const std::vector<exec::Content> contents, upstream_.Read(digests, limit, cancellation));
    exec::ActionResult result;
    result.exit_code = execution.exit_code;
    result.ran_on_worker = true;
    result.ran_earlier = execution.from_cache;
    result.output = execution.stdout_text;
    for (size_t i = 0; i < paths.size(); ++i) result.outputs[paths[i]] = contents[i];
    size_t next = paths.size();
    if (execution.stdout_digest) result.output += *contents[next++];
    result.output += execution.stderr_text;
    if (execution.stderr_digest) result.output += *contents[next++];
    return result;
  }

  Env& env_;
  Upstream& upstream_;
  const RemoteExecutorOptions options_;
  ShippedFolders shipped_;
  SentFolders sent_;
};

}  // namespace

absl::Status CheckRunsRemotely(const exec::Action& action) {
  const std::vector<std::string> words = exec::LocalCommand(action);
  if (std::any_of(words.begin(), words.end(), NamesRoot)) {
    return RunsOnlyHere(action, "its command names its folder by an absolute path");
  }
  for (const auto& [name, value] : action.environment) {
    if (NamesRoot(value)) return RunsOnlyHere(action, StrCat(name, " names its folder by an absolute path"));
  }
  if (action.tool_uses_shell && !std::all_of(words.begin(), words.end(), IsHarmlessWord)) {
    return MakeError(v1::ErrorDetail::INTERNAL,
                     StrCat("step \"", action.step, "\": a shell would interpret a word of its command"));
  }
  return absl::OkStatus();
}

std::unique_ptr<exec::Executor> MakeRemoteExecutor(Env& env, Upstream& upstream, RemoteExecutorOptions options) {
  const int max_jobs = options.max_jobs;
  auto run = [runner = std::make_shared<Runner>(env, upstream, std::move(options))](
                 const exec::Action& action, exec::ActionObserver* observer, Cancellation* cancellation) {
    return runner->Run(action, observer, cancellation);
  };
  return exec::MakePoolExecutor(env, std::move(run), max_jobs, 0);
}

}  // namespace kernix::remote
