// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
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
#include "common/os/seen_files.h"

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
    if (!seen_.Changed(Paths())) return kOk;
    std::vector<std::string> warnings;
    const absl::StatusOr<std::shared_ptr<Module>> module = Load(warnings);
    seen_.NoteLoad(Paths());
    return Interrupted() ? kInterrupted : Show(module, warnings);
  }

 private:
  absl::StatusOr<std::shared_ptr<Module>> Load(std::vector<std::string>& warnings) {
    LoadCallbacks callbacks;
    callbacks.warning = [&warnings](std::string_view text) { warnings.emplace_back(text); };
    callbacks.inputs = [this](const std::vector<std::string>& inputs) { inputs_ = inputs; };
    return LoadModule(client_, files_, flags_, std::move(callbacks));
  }

  std::vector<std::string> Paths() const {
    std::vector<std::string> paths = files_;
    paths.insert(paths.end(), inputs_.begin(), inputs_.end());
    return paths;
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
  SeenFiles seen_{Env::Posix()};
  std::string result_;  // the key or the error, with the warnings
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
