// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "client/kernixctl/command.h"
#include "client/kernixctl/compile_flags.h"
#include "client/kernixctl/compile_module.h"
#include "client/kernixctl/interrupt.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Compiles as `kernixctl compile` does, and again whenever a file or one of its headers changes, until Ctrl-C. Prints
one line for each new result, and the compiler's output once for each error. The files need not exist yet.

Exit codes: 3 no daemon, 5 no usable compiler, 130 ended by Ctrl-C.

Examples:
  kernixctl watch vector_add.cu --arch sm_90
  kernixctl watch vector_add.cu --arch sm_90 --print resources
  kernixctl watch kernels/*.cpp -I include --build-directory out)";

constexpr std::chrono::milliseconds kInterval{200};

// A module, and what it depends on.
class WatchedModule {
 public:
  WatchedModule(Client& client, const CompileFlags& flags, std::vector<std::string> files)
      : client_(client), flags_(flags), files_(std::move(files)) {}

  // Compiles the module if something has changed, and shows the result if it is another one. Returns kOk, or the exit
  // code if no edit can help.
  int Poll() {
    const States before = Look();
    if (before == seen_) return kOk;
    const int64_t begun_unix_ms = Env::Posix().UnixMillis();
    std::vector<std::string> warnings;
    const absl::StatusOr<std::shared_ptr<Module>> module = Load(warnings);
    seen_ = StatesAtLoad(before, begun_unix_ms);
    return Interrupted() ? kInterrupted : Show(module, warnings);
  }

 private:
  using States = std::map<std::string, std::optional<FileIdentity>>;

  absl::StatusOr<std::shared_ptr<Module>> Load(std::vector<std::string>& warnings) {
    LoadCallbacks callbacks;
    callbacks.warning = [&warnings](std::string_view text) { warnings.emplace_back(text); };
    callbacks.inputs = [this](const std::vector<std::string>& inputs) { inputs_ = inputs; };
    return LoadModule(client_, files_, flags_, std::move(callbacks));
  }

  States Look() const {
    States states;
    for (const auto* paths : {&files_, &inputs_}) {
      for (const std::string& path : *paths) states.emplace(path, StateOf(Env::Posix(), path).identity);
    }
    return states;
  }

  // A file may have changed during the load. What the load has found only now and is too young to tell is left out, so
  // that the next look finds a change.
  States StatesAtLoad(const States& before, int64_t begun_unix_ms) const {
    States states;
    for (const auto& [path, identity] : Look()) {
      const auto known = before.find(path);
      if (known != before.end()) {
        states.insert(*known);
      } else if (!identity || identity->SettledAt(begun_unix_ms)) {
        states.emplace(path, identity);
      }
    }
    return states;
  }

  int Show(const absl::StatusOr<std::shared_ptr<Module>>& module, const std::vector<std::string>& warnings) {
    std::string result = module.ok() ? (*module)->key() : GetErrorDetail(module.status()).SerializeAsString();
    for (const std::string& warning : warnings) result += "\n" + warning;
    if (result == result_) return kOk;
    for (const std::string& warning : warnings) PrintWarning(warning);
    const absl::Status status = module.ok() ? Deliver(**module, files_, flags_) : module.status();
    result_ = status.ok() || !module.ok() ? std::move(result) : "";  // what could not be written is written next time
    if (status.ok()) return kOk;
    SaveFailure(status, files_, flags_);
    const int code = Fail(status);
    return code == kNoDaemon || code == kToolchain ? code : kOk;
  }

  Client& client_;
  const CompileFlags& flags_;
  const std::vector<std::string> files_;
  std::vector<std::string> inputs_;  // of the latest load that came so far
  std::optional<States> seen_;       // at the latest load
  std::string result_;               // the key or the error, with the warnings
};

int WatchAll(Client& client, const CompileFlags& flags) {
  std::vector<WatchedModule> modules;
  for (std::vector<std::string>& files : Modules(flags)) modules.emplace_back(client, flags, std::move(files));
  while (true) {
    for (WatchedModule& module : modules) {
      if (const int code = module.Poll(); code != kOk) return code;
    }
    if (Interrupted()) return kInterrupted;
    std::this_thread::sleep_for(kInterval);
  }
}

}  // namespace

Command WatchCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<CompileFlags>();
  return {.name = "watch",
          .summary = "Compile source files whenever they change",
          .details = kDetails,
          .options = CompileOptions(*flags),
          .run = [&options, flags] {
            return WithFlags(options, *flags, [&flags](Client& client) { return WatchAll(client, *flags); });
          }};
}

}  // namespace kernix::ctl
