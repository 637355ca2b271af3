// SPDX-License-Identifier: Apache-2.0
//
// Prints kernixctl's manual page, for the build.
#include <algorithm>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "client/kernixctl/command.h"
#include "common/base/manual_page.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

struct Variable {
  std::string_view name;
  std::string_view meaning;
};
constexpr Variable kVariables[] = {
    {"KERNIX_ADDRESS", "As --address."},
    {"KERNIX_CACHE_DIR", "As --store."},
    {"KERNIX_CONFIG", "Another file than ~/.config/kernix/client.toml."},
    {"KERNIX_SITE_PACKAGES", "As --site-packages, with colons between the folders."},
    {"KERNIXD", "The program to start as this user's daemon."},
    {"KERNIX_WARNINGS", "Warnings of loads to switch off: no-NAME, separated by commas, or none."},
    {"CXX, NVCC_CCBIN", "The host compiler; the second one for CUDA."},
    {"CUDA_HOME, CUDA_PATH", "The CUDA toolkit, before the nvcc on PATH."},
};

std::string TermOf(const Option& option) {
  if (IsPositional(option)) return absl::AsciiStrToUpper(option.spelling);
  const std::string spelling = absl::StrReplaceAll(option.spelling, {{",", ", "}});
  return IsSwitch(option) ? spelling : StrCat(spelling, " ", ValueWord(option));
}

void AddOptions(const std::vector<Option>& options, ManualPage& page) {
  for (const Option& option : options) page.Item(TermOf(option), option.help + ".");
}

std::string Usage(const std::string& path, const Command& command) {
  std::string usage = path;
  if (!command.subcommands.empty()) StrAppend(&usage, " COMMAND");
  for (const Option& option : command.options) {
    if (IsPositional(option)) {
      const bool several = std::holds_alternative<std::vector<std::string>*>(option.variable);
      StrAppend(&usage, " ", TermOf(option), several ? "..." : "");
    }
  }
  if (!std::all_of(command.options.begin(), command.options.end(), IsPositional)) StrAppend(&usage, " [OPTIONS]");
  return usage;
}

void AddCommand(const std::string& path, const Command& command, ManualPage& page) {
  page.Subsection(Usage(path, command));
  page.Text(command.summary + ".");
  AddOptions(command.options, page);
  page.Text(command.details);
  for (const Command& each : command.subcommands) AddCommand(StrCat(path, " ", each.name), each, page);
}

// The page kernixctl(1), from the texts of `root`, which is all of kernixctl.
std::string Manual(const Command& root) {
  ManualPage page(root.name, 1, root.summary);
  page.Section("SYNOPSIS");
  page.Text(StrCat(root.name, " [OPTIONS] COMMAND [OPTIONS OF THE COMMAND]"));
  page.Section("DESCRIPTION");
  page.Description(root.details);
  page.Section("OPTIONS");
  AddOptions(AllOptions(root), page);
  page.Section("COMMANDS");
  for (const Command& each : root.subcommands) AddCommand(StrCat(root.name, " ", each.name), each, page);
  page.Section("ENVIRONMENT");
  for (const Variable& variable : kVariables) page.Item(variable.name, variable.meaning);
  page.ClosingSections(absl::StrReplaceAll(root.details, {{"    ", "\n  "}}));  // one exit code a line
  page.Section("SEE ALSO");
  page.Text("kernixd(8)");
  return page.text();
}

}  // namespace
}  // namespace kernix::ctl

int main() {
  kernix::ClientOptions options;
  std::cout << kernix::ctl::Manual(kernix::ctl::RootCommand(options));
}
