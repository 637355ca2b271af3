// SPDX-License-Identifier: Apache-2.0
#include "client/load/history.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "client/connection/daemon_process.h"
#include "client/tools/environment.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix {
namespace {

constexpr char kLockFile[] = "lock";
// A change of a time takes up to a tenth of a hit.
constexpr std::chrono::nanoseconds kUseAccuracy = std::chrono::hours(1);
constexpr int64_t kMillisecond = 1'000'000;

using File = History::File;

std::vector<File> FilesOf(Env& env, const std::string& folder) {
  std::vector<File> files;
  const absl::StatusOr<std::vector<std::string>> names = env.ListDirectory(folder);
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    const absl::StatusOr<FileInfo> info = env.Stat(JoinPath(folder, name), /*follow=*/false);
    if (info.ok()) files.push_back({name, info->size, info->mtime_ns});
  }
  return files;
}

bool IsLoad(const File& file) { return file.name.ends_with(kLoadSuffix); }

// The last runs first; of each run, the first uses.
std::vector<File> LoadsOf(Env& env, const std::string& folder) {
  std::vector<File> loads = FilesOf(env, folder);
  std::erase_if(loads, std::not_fn(IsLoad));
  std::sort(loads.begin(), loads.end(), [](const File& a, const File& b) {
    return std::tuple(-(a.used_ns / kMillisecond), a.used_ns) < std::tuple(-(b.used_ns / kMillisecond), b.used_ns);
  });
  return loads;
}

// The beginning of the names of the files of a module's loads.
std::string Beginning(std::string_view module_name) { return StrCat(DigestOf(module_name).Hex().substr(0, 16), "-"); }

std::string FileName(std::string_view module_name, std::string_view key) {
  return StrCat(Beginning(module_name), key, kLoadSuffix);
}

std::string NameOf(const v1::RecordedLoad& load) { return FileName(load.request().name(), load.key()); }

}  // namespace

History::History(Env& env, const std::string& histories, const std::string& program, HistoryBounds bounds)
    : env_(env), histories_(histories), folder_(JoinPath(histories, DigestOf(program).Hex())), bounds_(bounds) {}

absl::Status History::Note(ProgramRun& run, const PreparedLoad& load, const std::string& key) {
  const std::string name = FileName(load.request.name(), key);
  const std::string path = JoinPath(folder_, name);
  const int64_t use = run.began_ns + std::min(run.uses++, kMillisecond - 1);
  const absl::StatusOr<FileInfo> known = env_.Stat(path, /*follow=*/false);
  if (known.ok()) {
    const bool is_recent = known->mtime_ns > run.began_ns - kUseAccuracy.count();
    return is_recent ? absl::OkStatus() : env_.SetModificationTime(path, use);
  }
  if (run.full) return absl::OkStatus();
  std::vector<File> files = FilesOf(env_, folder_);
  if (IsFull(files)) {
    KeepUsed(run.began_ns - kUseAccuracy.count());
    files = FilesOf(env_, folder_);
    run.full = IsFull(files);
    if (run.full) return absl::OkStatus();
  }
  KERNIX_RETURN_IF_ERROR(EnsureFolder());
  KERNIX_RETURN_IF_ERROR(NoteLoadAs(env_, path, load, key));
  KERNIX_RETURN_IF_ERROR(env_.SetModificationTime(path, use));
  ForgetOlder(files, name, run.began_ns);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> History::Lock() { return env_.TryLockFile(JoinPath(folder_, kLockFile)); }

absl::Status History::EnsureFolder() {
  KERNIX_RETURN_IF_ERROR(EnsureOwnDirectory(env_, histories_, geteuid()));
  if (const auto own = env_.Stat(folder_); own.ok() && own->type == FileType::kDirectory) return absl::OkStatus();
  std::vector<File> others = FilesOf(env_, histories_);
  for (File& other : others) {
    const std::vector<File> loads = LoadsOf(env_, JoinPath(histories_, other.name));
    if (!loads.empty()) other.used_ns = loads.front().used_ns;
  }
  std::sort(others.begin(), others.end(), [](const File& a, const File& b) { return a.used_ns > b.used_ns; });
  for (size_t i = bounds_.programs - 1; i < others.size(); ++i) {
    KERNIX_RETURN_IF_ERROR(env_.RemoveTree(JoinPath(histories_, others[i].name)));
  }
  return env_.CreateDirectories(folder_, 0700);
}

bool History::IsFull(const std::vector<File>& files) const {
  uint64_t bytes = 0;
  for (const File& file : files) bytes += file.size;
  const auto loads = static_cast<size_t>(std::count_if(files.begin(), files.end(), IsLoad));
  return loads >= bounds_.loads || bytes >= bounds_.bytes;
}

// Forgets the other loads, and the texts that then belong to none.
void History::KeepUsed(int64_t since_ns) {
  std::set<Digest> needed;
  for (const File& file : LoadsOf(env_, folder_)) {
    const std::string path = JoinPath(folder_, file.name);
    const absl::StatusOr<v1::RecordedLoad> load = ParseLoad(env_, path);
    const absl::StatusOr<std::vector<Digest>> texts = load.ok() ? TextsOf(*load) : load.status();
    if (texts.ok() && file.used_ns > since_ns) {
      needed.insert(texts->begin(), texts->end());
    } else {
      (void)env_.RemoveFile(path);
    }
  }
  for (const File& file : FilesOf(env_, folder_)) {
    if (!file.name.ends_with(kTextSuffix)) continue;
    const auto digest = Digest::FromHex(file.name.substr(0, file.name.size() - kTextSuffix.size()));
    if (!digest.ok() || !needed.contains(*digest)) (void)env_.RemoveFile(JoinPath(folder_, file.name));
  }
}

// Of the loads with the name of this one, those that no run since then has used.
void History::ForgetOlder(const std::vector<File>& files, std::string_view file, int64_t before_ns) {
  const std::string_view beginning = file.substr(0, Beginning("").size());
  for (const File& other : files) {
    const bool is_older = other.name.starts_with(beginning) && other.name != file && other.used_ns < before_ns;
    if (is_older) (void)env_.RemoveFile(JoinPath(folder_, other.name));
  }
}

Recording History::Read() {
  Recording recording;
  const std::vector<File> files = LoadsOf(env_, folder_);
  int64_t oldest = 0;
  for (const File& file : files) {
    const std::string path = JoinPath(folder_, file.name);
    const bool is_read = file.used_ns >= oldest && ReadLoad(env_, path, recording).ok();
    if (is_read && NameOf(recording.loads.back()) == file.name) {
      if (oldest == 0) oldest = file.used_ns - std::chrono::nanoseconds(kHistoryAge).count();
      continue;
    }
    if (is_read) recording.loads.pop_back();
    (void)env_.RemoveFile(path);
  }
  return recording;
}

bool History::KnowsOthersBeside(std::string_view name) {
  if (!CheckPrivateDirectory(env_, histories_, geteuid()).ok()) return false;
  const std::vector<File> loads = LoadsOf(env_, folder_);
  const auto is_its_own = [&, beginning = Beginning(name)](const File& file) {
    return file.name.starts_with(beginning);
  };
  return std::any_of(loads.begin(), loads.end(), is_its_own) && !std::all_of(loads.begin(), loads.end(), is_its_own);
}

namespace {

ProgramRun& ThisRun() {
  static ProgramRun run(Env::Posix());
  return run;
}

// Whose loads this process's are. Empty: nobody's.
std::string ProgramOf(const ClientOptions& client, const GetEnv& get_env, const LoadOptions& options) {
  if (!options.in_history || get_env(kHistoryVariable) == "0") return "";
  static const std::string executable = Env::Posix().ReadLink("/proc/self/exe").value_or("");
  return client.program.value_or(executable);
}

}  // namespace

OwnHistory::OwnHistory(DaemonClient& daemon, const std::vector<std::string>& variables, const GetEnv& get_env,
                       const LoadOptions& options)
    : daemon_(daemon),
      variables_(variables),
      get_env_(get_env),
      program_(ProgramOf(daemon.options(), get_env, options)) {
  if (program_.empty()) return;
  const absl::StatusOr<std::string> folder = daemon.OwnFolder(kHistoriesFolder);
  if (folder.ok()) history_.emplace(Env::Posix(), *folder, program_);
}

LoadCallbacks OwnHistory::WithWarmUp(const v1::LoadRequest& request, LoadCallbacks callbacks) {
  if (!history_ || request.only_cached() || request.frozen() || request.force_rebuild()) return callbacks;
  callbacks.progress = [this, &request, next = callbacks.progress, asked = false](std::string_view text) mutable {
    static std::atomic_flag is_begun;
    const bool begins = !std::exchange(asked, true) && history_->KnowsOthersBeside(request.name());
    if (begins && !is_begun.test_and_set()) WarmUp();
    if (next) next(text);
  };
  return callbacks;
}

// Without a kernixctl, the other loads wait for their turn.
void OwnHistory::WarmUp() const {
  const ClientOptions& client = daemon_.options();
  std::vector<std::string> arguments;
  if (!client.address.empty()) arguments.insert(arguments.end(), {"--address", client.address});
  if (!client.store_directory.empty()) arguments.insert(arguments.end(), {"--store", client.store_directory});
  arguments.insert(arguments.end(), {"warmup", program_});
  for (const std::string& folder : client.site_packages) {
    arguments.insert(arguments.end(), {"--site-packages", folder});
  }
  ClientEnvironment environment;
  environment.get_env = get_env_;
  (void)StartKernixctl(environment, client, variables_, arguments);
}

std::string OwnHistory::Note(const PreparedLoad& load, const std::string& key) {
  if (!history_) return "";
  const absl::Status noted = history_->Note(ThisRun(), load, key);
  const bool is_expected = noted.ok() || absl::IsPermissionDenied(noted) || absl::IsNotFound(noted);
  if (is_expected) return "";
  return StrCat("what this program loads is not remembered for the next upgrade: ", ToStd(noted.message()));
}

}  // namespace kernix
