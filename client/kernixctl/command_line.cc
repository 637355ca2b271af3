// SPDX-License-Identifier: Apache-2.0
//
// The one source that knows CLI11, which takes seconds to compile.
#include <CLI/CLI.hpp>

#include "client/kernixctl/command.h"
#include "client/kernixctl/completion.h"

namespace kernix::ctl {
namespace {

CLI::Option* AddAt(bool* place, CLI::App& app, const Option& option) {
  return app.add_flag(option.spelling, *place, option.help);
}

CLI::Option* AddAt(std::string* place, CLI::App& app, const Option& option) {
  return app.add_option(option.spelling, *place, option.help);
}

CLI::Option* AddAt(std::vector<std::string>* place, CLI::App& app, const Option& option) {
  CLI::Option* added = app.add_option(option.spelling, *place, option.help);
  return added->get_positional() ? added : added->allow_extra_args(false);
}

template <typename Number>
CLI::Option* AddAt(Number* place, CLI::App& app, const Option& option) {
  return app.add_option(option.spelling, *place, option.help)
      ->check(CLI::Range(static_cast<Number>(option.rules.least), static_cast<Number>(option.rules.most)));
}

void AddOption(CLI::App& app, const Option& option) {
  CLI::Option* added = std::visit([&](auto* place) { return AddAt(place, app, option); }, option.place);
  const OptionRules& rules = option.rules;
  added->required(rules.required);
  if (!rules.excludes.empty()) added->excludes(app.get_option(rules.excludes));
  if (!rules.variable.empty()) added->envname(rules.variable)->delimiter(':');
  if (!rules.choices.empty()) added->check(CLI::IsMember(rules.choices));
}

// If the command line names `command`, sets `chosen`.
void Describe(const Command& command, CLI::App& app, const Command*& chosen) {
  for (const Option& option : command.options) AddOption(app, option);
  for (const Command& each : command.subcommands) Describe(each, *app.add_subcommand(each.name, each.summary), chosen);
  if (!command.subcommands.empty()) app.require_subcommand(1);
  if (command.run) app.callback([&command, &chosen] { chosen = &command; });
  app.footer(command.details);
}

}  // namespace

int Main(int argc, char** argv) {
  GlobalOptions options;
  const Command root = RootCommand(options);
  if (argc > 1 && argv[1] == kCompletionRequest) {
    std::cout << CompletionLines(root, {argv + 2, argv + argc});
    return kOk;
  }
  const Command* chosen = nullptr;
  CLI::App app(root.summary, root.name);
  app.set_help_flag(kHelp.spelling, kHelp.help);
  app.set_version_flag(kVersion.spelling, root.version, kVersion.help);
  Describe(root, app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return chosen->run();
}

}  // namespace kernix::ctl
