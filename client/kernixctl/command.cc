// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/command.h"

#include <iostream>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/load/load_request.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/base/version.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] = R"(Exit codes:
  0 done    1 failed    2 bad flags    3 no daemon    4 the code does not compile    5 no usable compiler
  6 not in the cache, and the policy forbids compiling    130 Ctrl-C

The daemon is the first of: --address, --store, $KERNIX_ADDRESS, $KERNIX_CACHE_DIR, the machine's service, this user's
own.

Environment:
  KERNIX_ADDRESS          as --address
  KERNIX_CACHE_DIR        as --store
  KERNIX_SITE_PACKAGES    as --site-packages, with colons between the folders
  KERNIXD                 the program to start as this user's daemon
  KERNIX_WARNINGS         warnings of loads to switch off: no-NAME, separated by commas, or none
  CXX, NVCC_CCBIN         the host compiler; the second one for CUDA
  CUDA_HOME, CUDA_PATH    the CUDA toolkit, before the nvcc on PATH

Examples:
  kernixctl doctor
  kernixctl status
  kernixctl cache stats --json
  kernixctl compile kernel.cu --arch sm_90 -o kernel.so)";

int CodeFor(ErrorKind kind) {
  switch (kind) {
    case v1::ErrorDetail::UNREACHABLE:
      return kNoDaemon;
    case v1::ErrorDetail::COMPILATION:
      return kCompilation;
    case v1::ErrorDetail::TOOLCHAIN:
    case v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN:
      return kToolchain;
    case v1::ErrorDetail::CANCELLED:
      return kInterrupted;
    case v1::ErrorDetail::NOT_CACHED:
      return kNotCached;
    default:
      return kFailure;
  }
}

struct OptionWords {
  std::string_view python;
  std::string_view own;
};

constexpr OptionWords kOptions[] = {
    {"compute_capability", "--arch"},     {"extra_cflags", "--flag"},       {"extra_cuda_cflags", "--flag"},
    {"extra_include_paths", "--include"}, {"extra_ldflags", "--link-flag"}, {"'functions'", "--function"},
};

}  // namespace

int Fail(const absl::Status& status) {
  const v1::ErrorDetail detail = GetErrorDetail(status);
  const std::string output = PrintableLines(detail.compiler_output());
  std::cerr << "kernixctl: " << WithOwnWords(detail.message()) << "\n";
  // The message of a compile error may already contain the compiler's output.
  if (!output.empty() && detail.message().find(output) == std::string::npos) {
    std::cerr << output << (output.ends_with('\n') ? "" : "\n");
  }
  return CodeFor(detail.kind());
}

int RefuseUsage(std::string_view message) {
  std::cerr << "kernixctl: " << message << "\n";
  return kUsage;
}

int WithClient(const ClientOptions& options, const std::function<int(DaemonClient&)>& use) {
  const absl::StatusOr<std::unique_ptr<DaemonClient>> client = DaemonClient::Create({}, options);
  if (!client.ok()) return Fail(client.status());
  return use(**client);
}

int PrintAnswer(const ClientOptions& options, const std::function<absl::StatusOr<std::string>(DaemonClient&)>& answer) {
  return WithClient(options, [&answer](DaemonClient& client) -> int {
    const absl::StatusOr<std::string> text = answer(client);
    if (!text.ok()) return Fail(text.status());
    std::cout << *text;
    return kOk;
  });
}

std::string ValueWord(const Option& option) {
  if (!option.rules.choices.empty()) return absl::StrJoin(option.rules.choices, "|");
  if (option.rules.most > 0) return "N";
  if (option.rules.names == Names::kFiles) return "FILE";
  return option.rules.names == Names::kFolders ? "DIR" : "TEXT";
}

std::vector<Option> AllOptions(const Command& command) {
  std::vector<Option> options = {kHelp};
  if (!command.version.empty()) options.push_back(kVersion);
  options.insert(options.end(), command.options.begin(), command.options.end());
  return options;
}

Option SitePackages(std::vector<std::string>& site_packages) {
  return {"--site-packages",
          &site_packages,
          "A Python's folders to search for nvcc from PyPI wheels, and for JAX",
          {.variable = "KERNIX_SITE_PACKAGES", .names = Names::kFolders}};
}

Option PolicyOption(std::string& policy) {
  return {"--policy",
          &policy,
          "What to do if the cache lacks a kernel: build it, or fail and name it (default: $KERNIX_POLICY, else build)",
          {.choices = kPolicyNames}};
}

Command RootCommand(ClientOptions& options) {
  options.program = "";
  return {.name = "kernixctl",
          .summary = "Controls kernixd and its cache of compiled kernels.",
          .details = kDetails,
          .options = {{"--address",
                       &options.address,
                       "Talk to the daemon at this Unix socket: unix:/path or /path",
                       {.names = Names::kFiles}},
                      {"--store",
                       &options.store_directory,
                       "Talk to this user's daemon for this cache folder",
                       {.names = Names::kFolders}}},
          .subcommands = {StatusCommand(options), CacheCommand(options), TraceCommand(options), CompileCommand(options),
                          BuildCommand(options), BundleCommand(options), RecordCommand(), PrefetchCommand(options),
                          WarmupCommand(options), DescribeCommand(options), WatchCommand(options),
                          DoctorCommand(options), MetricsCommand(options), TopCommand(options), WebCommand(options),
                          ReloadCommand(options), SetupCommand(), ShutdownCommand(options), CompletionCommand()},
          .version = StrCat("kernixctl ", Version(), " (build ", BuildId(), ")")};
}

std::string WithOwnWords(const std::string& message) {
  std::vector<std::string> words;
  for (const OptionWords& option : kOptions) {
    if (message.find(option.python) != std::string::npos) words.push_back(StrCat(option.python, " is ", option.own));
  }
  return words.empty() ? message : StrCat(message, "\nIn kernixctl, ", absl::StrJoin(words, ", "), ".");
}

}  // namespace kernix::ctl
