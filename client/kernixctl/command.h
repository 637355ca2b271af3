// SPDX-License-Identifier: Apache-2.0
//
// kernixctl's commands are values: parsing, help and the shells' completions all come from them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/daemon_client.h"
#include "kernix/client.h"

namespace kernix::ctl {

// The exit codes, which docs/cli.md documents.
enum ExitCode : int {
  kOk = 0,
  kFailure = 1,      // any failure without its own code
  kUsage = 2,        // invalid flags
  kNoDaemon = 3,     // no daemon is running, or none could be started
  kCompilation = 4,  // the compiler or the linker failed
  kToolchain = 5,    // no usable compiler
  kNotCached = 6,    // the cache does not have it, and it may not, or cannot, be compiled here
  kInterrupted = 130,
};

// Where an option's value goes: a switch, a text, one text for each time that it is given, a number.
using Variable = std::variant<bool*, std::string*, std::vector<std::string>*, int*, uint32_t*>;

// Completions of a value, unless the option has choices.
enum class Names { kNone, kFiles, kFolders };

// Rarely used properties of options.
struct OptionRules {
  bool required = false;
  std::string excludes = {};  // the spelling of an option before this one that may not be given as well
  std::string variable = {};  // gives the value if the command line does not: texts with ':' between them
  std::vector<std::string> choices = {};
  Names names = Names::kNone;
  int64_t least = 0;  // of a number
  int64_t most = 0;
};

struct Option {
  std::string spelling;  // "-o,--output", or "file" for what is given without a dash
  Variable variable;     // lives as long as the command
  std::string help;
  OptionRules rules = {};
};

// Options that the parser adds to a command and answers itself; they set no variable.
inline const Option kHelp{"-h,--help", static_cast<bool*>(nullptr), "Print this help message and exit"};
inline const Option kVersion{"--version", static_cast<bool*>(nullptr), "Display program version information and exit"};

// Positional options are given without a dash.
inline bool IsPositional(const Option& option) { return option.spelling.front() != '-'; }
inline bool IsSwitch(const Option& option) { return std::holds_alternative<bool*>(option.variable); }

// The placeholder for the value of an option that is neither positional nor a switch: "FILE", "ptx|sass".
std::string ValueWord(const Option& option);

// Either has subcommands, one of which must be given, or runs.
struct Command {
  std::string name;
  std::string summary;
  std::string details;  // below the options in --help: paragraphs, then examples
  std::vector<Option> options = {};
  std::function<int()> run = nullptr;  // prints the command's output, and returns an ExitCode
  std::vector<Command> subcommands = {};
  std::string version = {};  // what --version prints; without it, there is no --version
};

// kHelp, kVersion if the command has a version, and the command's own options.
std::vector<Option> AllOptions(const Command& command);

// The commands. `options`, which the flags before the command set, must outlive them.
Command StatusCommand(const ClientOptions& options);
Command CacheCommand(const ClientOptions& options);
Command CacheShowCommand(const ClientOptions& options);
Command TraceCommand(const ClientOptions& options);
Command BuildCommand(const ClientOptions& options);
Command BundleCommand(const ClientOptions& options);
Command BundleMakeCommand(const ClientOptions& options);
Command CompileCommand(const ClientOptions& options);
Command WatchCommand(const ClientOptions& options);
Command DoctorCommand(const ClientOptions& options);
Command MetricsCommand(const ClientOptions& options);
Command PrefetchCommand(const ClientOptions& options);
Command RecordCommand();
Command TopCommand(const ClientOptions& options);
Command WarmupCommand(const ClientOptions& options);
Command WebCommand(const ClientOptions& options);
Command DescribeCommand(const ClientOptions& options);
Command ReloadCommand(const ClientOptions& options);
Command SetupCommand();
Command ShutdownCommand(const ClientOptions& options);
Command CompletionCommand();

// All of kernixctl: the flags that set `options`, and the commands.
Command RootCommand(ClientOptions& options);

// --site-packages, which comes from $KERNIX_SITE_PACKAGES if it is not given.
Option SitePackages(std::vector<std::string>& site_packages);

// --policy. Without it, loads read $KERNIX_POLICY.
Option PolicyOption(std::string& policy);

// `kernixctl __complete WORDS...` prints CompletionLines(): the shells' scripts ask kernixctl itself, so they know
// every command and option of the kernixctl that the user types.
inline constexpr std::string_view kCompletionRequest = "__complete";

// Completions of the last of `words`, the arguments up to the cursor: lines of a word, a tab, and its meaning; or the
// line ":files" or ":folders". `words` may be split at '=', as bash splits them.
std::string CompletionLines(const Command& root, const std::vector<std::string>& words);

// The whole of main().
int Main(int argc, char** argv);

// Prints `status` and the compiler's output on stderr, and returns the matching exit code.
int Fail(const absl::Status& status);

// Runs `words`, the first of which is found on PATH, with this process's terminal and files, and waits for its end.
// Ctrl-C is for the command; SIGTERM and SIGHUP are passed on. Returns its exit code, 128 + N if signal N ended it.
// kNotFound or kPermissionDenied if it cannot be started. Call it in a process that has no other thread.
absl::StatusOr<int> RunInForeground(std::vector<std::string> words, std::vector<std::string> environment);

// Prints "kernixctl: " and `message` on stderr, and returns kUsage.
int RefuseUsage(std::string_view message);

// Calls `use(client)` with a client for these options, or Fail() if there is none.
int WithClient(const ClientOptions& options, const std::function<int(DaemonClient&)>& use);

// Prints what `answer(client)` returns, or calls Fail() with its error.
int PrintAnswer(const ClientOptions& options, const std::function<absl::StatusOr<std::string>(DaemonClient&)>& answer);

// `message` of an error. If it names options by their words in the Python client, a line with kernixctl's words
// follows.
std::string WithOwnWords(const std::string& message);

}  // namespace kernix::ctl
