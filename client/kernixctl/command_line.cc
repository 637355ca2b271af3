// SPDX-License-Identifier: Apache-2.0
//
// The one source that knows CLI11, which takes seconds to compile.
#include <CLI/CLI.hpp>

#include "client/kernixctl/command.h"
#include "common/base/nearest_name.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace kernix::ctl {
namespace {

CLI::Option* AddAt(bool* variable, CLI::App& app, const Option& option) {
  return app.add_flag(option.spelling, *variable, option.help);
}

CLI::Option* AddAt(std::string* variable, CLI::App& app, const Option& option) {
  return app.add_option(option.spelling, *variable, option.help);
}

CLI::Option* AddAt(std::vector<std::string>* variable, CLI::App& app, const Option& option) {
  CLI::Option* added = app.add_option(option.spelling, *variable, option.help);
  return added->get_positional() ? added : added->allow_extra_args(false);
}

template <typename Number>
CLI::Option* AddAt(Number* variable, CLI::App& app, const Option& option) {
  return app.add_option(option.spelling, *variable, option.help)
      ->check(
          CLI::Range(static_cast<Number>(option.rules.least), static_cast<Number>(option.rules.most)).description(""));
}

void AddOption(CLI::App& app, const Option& option) {
  CLI::Option* added = std::visit([&](auto* variable) { return AddAt(variable, app, option); }, option.variable);
  const OptionRules& rules = option.rules;
  if (!IsSwitch(option)) added->type_name(IsPositional(option) ? "" : ValueWord(option));
  added->required(rules.required);
  if (!rules.excludes.empty()) added->excludes(app.get_option(rules.excludes));
  if (!rules.variable.empty()) added->envname(rules.variable)->delimiter(':');
  if (!rules.choices.empty()) added->check(CLI::IsMember(rules.choices).description(""));
}

// If the command line names `command`, sets `chosen`.
void Describe(const Command& command, CLI::App& app, const Command*& chosen) {
  for (const Option& option : command.options) AddOption(app, option);
  for (const Command& each : command.subcommands) Describe(each, *app.add_subcommand(each.name, each.summary), chosen);
  if (!command.subcommands.empty()) app.require_subcommand(1);
  if (command.run) app.callback([&command, &chosen] { chosen = &command; });
  app.footer(command.details);
}

std::string Unknown(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(each->get_name());
  }
  const std::string name = word.substr(0, word.find('='));
  std::string meant = DidYouMean(name, known);
  if (name == "tune") meant = " Did you mean `python -m kernix tune`?";  // it calls kernels on arrays of Python
  if (name == "--store" || name == "--address")
    meant = StrCat(" It stands before the command: kernixctl ", name, " PLACE.");
  return StrCat(app.get_name(), " does not know ", Printable(name), ".", meant);
}

// A word that nothing takes counts before `error`: it may be what is missing.
std::string Mistake(const CLI::App& app, const CLI::ParseError& error) {
  if (const std::vector<std::string> words = app.remaining(); !words.empty()) return Unknown(app, words.front());
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? Printable(error.what()) + "." : Mistake(*chosen.front(), error);
}

}  // namespace

int Main(int argc, char** argv) {
  ClientOptions options;
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
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    return RefuseUsage(StrCat(Mistake(app, error), " See --help."));
  }
  return chosen->run();
}

}  // namespace kernix::ctl
