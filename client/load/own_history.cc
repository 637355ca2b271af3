// SPDX-License-Identifier: Apache-2.0
#include "client/load/own_history.h"

#include <atomic>
#include <utility>

#include "client/connection/daemon_process.h"
#include "client/tools/environment.h"
#include "common/base/strings.h"
#include "common/os/env.h"

namespace kernix {
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
