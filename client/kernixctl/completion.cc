// SPDX-License-Identifier: Apache-2.0
//
// What bash and zsh complete: `kernixctl completion`, and the question that its scripts ask.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/kernixctl/command.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

// The meaning of the words before the last one.
struct Position {
  const Command* command;
  const Option* option = nullptr;  // takes the last word as its value
};

std::vector<std::string> Spellings(const Option& option) { return absl::StrSplit(option.spelling, ','); }

// Null if the command has no such option, or if it takes no value.
const Option* OptionWithValue(const Command& command, const std::string& word) {
  for (const Option& option : command.options) {
    const std::vector<std::string> spellings = Spellings(option);
    const bool named = std::find(spellings.begin(), spellings.end(), word) != spellings.end();
    if (named && !IsPositional(option) && !IsSwitch(option)) return &option;
  }
  return nullptr;
}

const Command* Subcommand(const Command& command, const std::string& word) {
  for (const Command& each : command.subcommands) {
    if (each.name == word) return &each;
  }
  return nullptr;
}

void Pass(const std::string& word, Position& position) {
  if (word == "=") return;
  if (position.option != nullptr) {
    position.option = nullptr;
  } else if (const Command* subcommand = Subcommand(*position.command, word)) {
    position.command = subcommand;
  } else {
    position.option = OptionWithValue(*position.command, word);
  }
}

// The lines of what begins with `begun`.
class Lines {
 public:
  explicit Lines(std::string begun) : begun_(std::move(begun)) {}

  void Add(std::string_view word, std::string_view meaning) {
    if (word.starts_with(begun_)) StrAppend(&text_, word, "\t", meaning, "\n");
  }
  void AddValues(const Option& option) {
    for (const std::string& choice : option.rules.choices) Add(choice, "");
    if (option.rules.names == Names::kFiles) text_ = ":files\n";
    if (option.rules.names == Names::kFolders) text_ = ":folders\n";
  }
  void AddOptions(const Command& command) {
    for (const Option& option : AllOptions(command)) {
      if (IsPositional(option)) continue;
      for (const std::string& spelling : Spellings(option)) Add(spelling, option.help);
    }
  }
  void AddArguments(const Command& command) {
    for (const Command& each : command.subcommands) Add(each.name, each.summary);
    for (const Option& option : command.options) {
      if (IsPositional(option)) AddValues(option);
    }
  }
  const std::string& text() const { return text_; }

 private:
  const std::string begun_;
  std::string text_;
};

std::string LinesFor(const Position& position, const std::string& word) {
  Lines lines(word == "=" ? "" : word);
  if (position.option != nullptr) {
    lines.AddValues(*position.option);
  } else if (word.starts_with('-')) {
    lines.AddOptions(*position.command);
  } else {
    lines.AddArguments(*position.command);
  }
  return lines.text();
}

constexpr char kBashCompletion[] = R"(# Completion of kernixctl for bash
_kernixctl() {
  local lines
  mapfile -t lines < <("$1" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  case ${lines[0]-} in
    :files) compopt -o default ;;
    :folders) compopt -o dirnames ;;
    *) COMPREPLY=("${lines[@]%%$'\t'*}") ;;
  esac
}
complete -F _kernixctl kernixctl
)";

constexpr char kZshCompletion[] = R"(#compdef kernixctl
# Completion of kernixctl for zsh
_kernixctl() {
  local -a lines
  lines=("${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  compset -P '--*='
  case $lines[1] in
    :files) _files ;;
    :folders) _files -/ ;;
    ?*) lines=("${(@)lines//:/\\:}"); lines=("${(@)lines/$'\t'/:}"); _describe kernixctl lines ;;
  esac
}
if [[ $funcstack[1] == _kernixctl ]]; then _kernixctl "$@"; else compdef _kernixctl kernixctl; fi
)";

constexpr char kDetails[] =
    R"(Prints a script for the shell. An installation has it already; otherwise, add a line to ~/.bashrc or,
below compinit, to ~/.zshrc.

Examples:
  kernixctl completion bash
  source <(kernixctl completion bash)
  source <(kernixctl completion zsh))";

}  // namespace

std::string CompletionLines(const Command& root, const std::vector<std::string>& words) {
  if (words.empty()) return "";
  Position position{.command = &root};
  std::for_each(words.begin(), words.end() - 1, [&](const std::string& word) { Pass(word, position); });
  const std::pair<std::string, std::string> parts = absl::StrSplit(words.back(), absl::MaxSplits('=', 1));
  if (!parts.first.starts_with("--") || parts.first == words.back()) return LinesFor(position, words.back());
  Pass(parts.first, position);  // "--print=re", as zsh passes it
  return LinesFor(position, parts.second);
}

Command CompletionCommand() {
  const auto shell = std::make_shared<std::string>();
  return {.name = "completion",
          .summary = "Print a script that completes kernixctl's commands",
          .details = kDetails,
          .options = {{"shell", shell.get(), "The shell", {.required = true, .choices = {"bash", "zsh"}}}},
          .run = [shell]() -> int {
            std::cout << (*shell == "bash" ? kBashCompletion : kZshCompletion);
            return kOk;
          }};
}

}  // namespace kernix::ctl
