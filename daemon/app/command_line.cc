// SPDX-License-Identifier: Apache-2.0
//
// Reads the command line, the environment and the config file, in this order of precedence.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "common/wire/kernixd_exit.h"
#include "daemon/app/settings.h"

namespace kernix::server {
namespace {

constexpr char kSummary[] = "Compiles JAX FFI kernels for its clients and caches them.";

constexpr char kFooter[] =
    R"(Every setting but toolchains can also come from the environment (--idle-timeout as KERNIX_IDLE_TIMEOUT) and from the
config file (idle_timeout = "15m"). Flags win over the environment, and that over the file.

SIGHUP and `kernixctl reload` read the config file again; the log lists the changed settings and those that
need a restart.

Examples:
  kernixd                                        serve this user's default store, in the foreground
  kernixd --store-directory /scratch/me/kernix   another store
  kernixd --config /etc/kernix/kernixd.toml      a machine's service
  kernixd --config kernixd.toml --check-config   check this file
  kernixd --describe-toolchain fleet.toolchain --host-compiler /usr/bin/g++ --nvcc /usr/local/cuda/bin/nvcc

Exit codes: 0 stopped, or idle; 1 an error; 2 wrong flags or configuration; 3 the store is unusable;
4 another kernixd serves this socket or store; 5 stopped and cancelled running loads.)";

// A flag on the command line, and its text.
struct GivenFlag {
  const Setting* setting;
  std::string text;
};

// The command line, parsed by CLI11. This class catches all of CLI11's exceptions.
class CommandLine {
 public:
  CommandLine() : app_(kSummary, "kernixd") {
    app_.footer(kFooter);
    app_.set_version_flag("--version", StrCat("kernixd ", Version(), " (build ", BuildId(), ")"));
    app_.add_option("--config", config_, "read settings from this TOML file")->type_name("FILE");
    app_.add_flag("--check-config", check_, "check the settings with their groups and toolchains, and exit");
    AddDescription();
    app_.add_option("--oneshot-fd", oneshot_fd_, "serve this connected socket until it closes, then exit")
        ->type_name("FD")
        ->check([](const std::string& text) { return text.starts_with('-') ? "must not be negative" : ""; });
    for (const Setting& setting : Settings()) AddSetting(setting);
  }

  // Returns false if there is nothing to run; `result` then says what to print and how to exit.
  bool Parse(std::vector<std::string> arguments, ParsedCommandLine& result) {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects them in reverse
    try {
      app_.parse(std::move(arguments));
      return true;
    } catch (const CLI::Success& success) {  // --help, --version
      result.text = success.get_name() == "CallForVersion" ? StrCat(success.what(), "\n") : app_.help();
    } catch (const CLI::ParseError& error) {
      result.text = StrCat("kernixd: ", error.what(), "\nTry: kernixd --help\n");
      result.exit_code = kExitUsage;
    }
    result.exit_now = true;
    return false;
  }

  const std::string& config() const { return config_; }
  std::optional<DescriptionTask> describe() const {
    return describe_.output.empty() ? std::nullopt : std::optional(describe_);
  }
  int oneshot_fd() const { return oneshot_fd_; }
  bool check() const { return check_; }

  std::vector<GivenFlag> given() const {
    std::vector<GivenFlag> given;
    for (const auto& [setting, option] : options_) {
      if (option->count() > 0) given.push_back({setting, option->results().back()});
    }
    return given;
  }

 private:
  void AddDescription() {
    CLI::Option* task = app_.add_option("--describe-toolchain", describe_.output,
                                        "write a description of these tools for nodes without compilers, and exit");
    task->type_name("FILE");
    v1::ToolchainPaths& paths = describe_.paths;
    app_.add_option("--host-compiler", *paths.mutable_host_compiler(), "to describe: the g++ or clang++")
        ->type_name("PATH")
        ->needs(task);
    app_.add_option("--nvcc", *paths.mutable_nvcc(), "to describe: the nvcc; without one, for C++ only")
        ->type_name("PATH")
        ->needs(task);
    AddFolders("--cuda-include-directory", "to describe: folders of CUDA's headers beside the toolkit",
               *paths.mutable_cuda_include_directories(), task);
    AddFolders("--cuda-library-directory", "to describe: folders of CUDA's libraries beside the toolkit",
               *paths.mutable_cuda_library_directories(), task);
  }

  using Folders = google::protobuf::RepeatedPtrField<std::string>;

  void AddFolders(const std::string& flag, const std::string& help, Folders& folders, CLI::Option* task) {
    const std::function<void(const std::string&)> add = [&folders](const std::string& text) { *folders.Add() = text; };
    app_.add_option_function(flag, add, help)->type_name("DIR")->trigger_on_parse()->needs(task);
  }

  void AddSetting(const Setting& setting) {
    std::string& text = texts_.emplace_back();
    CLI::Option* option = setting.value.empty() ? app_.add_flag(setting.Flag(), text, std::string(setting.help))
                                                : app_.add_option(setting.Flag(), text, std::string(setting.help));
    if (!setting.value.empty()) option->type_name(std::string(setting.value));
    options_.emplace_back(&setting, option);
  }

  CLI::App app_;
  std::string config_;
  DescriptionTask describe_;
  int oneshot_fd_ = -1;
  bool check_ = false;
  std::deque<std::string> texts_;  // CLI11 keeps references
  std::vector<std::pair<const Setting*, CLI::Option*>> options_;
};

absl::Status ApplyEnvironment(const GetEnv& get_env, ServerOptions& options) {
  for (const Setting& setting : Settings()) {
    const std::optional<std::string> text = get_env(setting.Variable());
    if (text) KERNIX_RETURN_IF_ERROR(Annotate(setting.set(options, *text), setting.Variable()));
  }
  return absl::OkStatus();
}

absl::Status ApplyFlags(const CommandLine& line, ServerOptions& options) {
  options.oneshot_fd = line.oneshot_fd();
  for (const GivenFlag& flag : line.given()) {
    KERNIX_RETURN_IF_ERROR(Annotate(flag.setting->set(options, flag.text), flag.setting->Flag()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ServerOptions> Collect(Env& env, const GetEnv& get_env, const CommandLine& line) {
  ServerOptions options;
  if (!line.config().empty()) KERNIX_RETURN_IF_ERROR(ReadConfigFile(env, line.config(), options));
  KERNIX_RETURN_IF_ERROR(ApplyEnvironment(get_env, options));
  options.started_by_client = get_env("KERNIX_STARTED_BY_CLIENT").has_value();
  KERNIX_RETURN_IF_ERROR(ApplyFlags(line, options));
  KERNIX_RETURN_IF_ERROR(CheckOptions(options));
  return options;
}

}  // namespace

ParsedCommandLine ParseCommandLine(Env& env, const GetEnv& get_env, const std::vector<std::string>& arguments) {
  ParsedCommandLine result;
  CommandLine line;
  if (!line.Parse(arguments, result)) return result;
  result.describe = line.describe();
  if (result.describe) return result;
  absl::StatusOr<ServerOptions> options = Collect(env, get_env, line);
  if (options.ok()) {
    result.options = *std::move(options);
    result.has_config = !line.config().empty();
    result.check_only = line.check();
    return result;
  }
  result.exit_now = true;
  result.exit_code = kExitUsage;
  const std::string message(options.status().message());
  result.text = StrCat("kernixd: ", absl::StrReplaceAll(message, {{"\n", "\nkernixd: "}}), "\n");
  return result;
}

}  // namespace kernix::server
