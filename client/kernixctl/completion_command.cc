// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "client/kernixctl/command.h"
#include "client/kernixctl/completion.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Prints a script for the shell. An installation has it in its place already; elsewhere, add a line to ~/.bashrc or,
below compinit, to ~/.zshrc.

Examples:
  kernixctl completion bash
  source <(kernixctl completion bash)
  source <(kernixctl completion zsh))";

}  // namespace

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
