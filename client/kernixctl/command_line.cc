// SPDX-License-Identifier: Apache-2.0
//
// The one source that knows CLI11, which takes seconds to compile.
#include <CLI/CLI.hpp>
#include <algorithm>

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

// --- Mistakes --------------------------------------------------------------------------------------------------------

// "there is", "compile has".
std::string Has(const CLI::App& app) { return app.get_parent() == nullptr ? "there is" : app.get_name() + " has"; }

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : Commands(app)) names.push_back(each->get_name());
  return names;
}

// The nearest option; for --fast, an option of which it is a part, such as --use-fast-math.
std::string OptionMeant(const std::string& option, const std::vector<std::string>& names) {
  std::string nearest = DidYouMean(option, names);
  if (!nearest.empty() || !option.starts_with("--")) return nearest;
  const std::string part = option.substr(1);
  const auto found = std::find_if(names.begin(), names.end(), [&part](const std::string& name) {
    return (name + "-").find(part + "-") != std::string::npos;
  });
  return found == names.end() ? "" : DidYouMean(*found, {*found});
}

std::string Unknown(const CLI::App& app, const std::string& word) {
  if (word.starts_with("-")) {
    const std::string option = word.substr(0, word.find('='));
    return StrCat(Has(app), " no option ", option, ".", OptionMeant(option, OptionNames(app)));
  }
  const std::vector<std::string> commands = CommandNames(app);
  if (commands.empty()) return StrCat(app.get_name(), " takes no argument \"", word, "\".");
  return StrCat(Has(app), " no command \"", word, "\".", DidYouMean(word, commands));
}

// The error of a command line. A word that nothing takes counts before `error`: it may be what is missing.
std::string Mistake(const CLI::App& app, const CLI::ParseError& error) {
  if (const std::vector<std::string> words = app.remaining(); !words.empty()) return Unknown(app, words.front());
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? std::string(error.what()) + "." : Mistake(*chosen.front(), error);
}

// The command that the command line names.
const CLI::App& Named(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : Named(*chosen.front());
}

// The commands of `app`, of which one has to be given, as --help lists them.
std::string GiveACommand(const CLI::App& app) {
  std::string text = StrCat("give a command", app.get_parent() == nullptr ? "" : " of " + app.get_name(), ":\n");
  for (const CLI::App* each : Commands(app)) text += CLI::Formatter().make_subcommand(each);
  return text;
}

int Refuse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& named = Named(app);
  const bool lacks_command = app.remaining(/*recurse=*/true).empty() && !Commands(named).empty() &&
                             dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  return RefuseUsage(StrCat(lacks_command ? GiveACommand(named) : Printable(Mistake(app, error)) + " ", "See --help."));
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
    return Refuse(app, error);
  }
  return chosen->run();
}

}  // namespace kernix::ctl
