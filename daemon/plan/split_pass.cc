// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/split_pass.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "daemon/language/read/leading_includes.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/plan_parts.h"

namespace kernix::build {
namespace {

constexpr char kPoison[] = "kernix-preamble/poison.h";
constexpr char kAfterPreamble[] = ";\n";  // a token: the preprocessor says where it stands
constexpr char kEndOfUnit[] = "kernix: the unit ends here";

// Removes `-include cuda_runtime.h`, with which nvcc begins every unit.
bool RemoveRuntimeHeader(Command& argv) {
  const auto include = std::find(argv.begin(), argv.end(), "-include");
  if (include == argv.end() || argv.end() - include < 2 || std::count(argv.begin(), argv.end(), "-include") != 1) {
    return false;
  }
  argv.erase(include, include + 2);
  return true;
}

// Whether what follows a preamble has a word whose meaning depends on more of the preamble than its macros.
bool LooksBack(std::string_view rest) {
  return rest.find("__COUNTER__") != std::string_view::npos || rest.find("pop_macro") != std::string_view::npos;
}

// A pass over another text in the unit's place. `name`: of its outputs.
Step PassOver(std::string_view text, Step pass, const std::string& unit, std::string_view name) {
  SetInput(pass.action, unit, text);
  pass.action.step = "learn a preamble";
  for (std::string& output : pass.action.outputs) {
    const std::string renamed = StrCat(output, ".", name);
    std::replace(pass.action.argv.begin(), pass.action.argv.end(), output, renamed);
    output = renamed;
  }
  return pass;
}

// The same, which writes macros in the way of `flag`.
Step MacroStep(Step pass, const std::string& unit, std::string_view text, const char* flag, std::string_view name) {
  Step step = PassOver(text, std::move(pass), unit, name);
  step.action.argv.emplace_back(flag);
  return step;
}

// `poisoned`: names that the preamble must not use.
PreambleForm MakeForm(Step pass, const std::string& unit, const std::string& head, std::string poisoned,
                      std::string definitions) {
  PreambleForm form;
  form.alone = PassOver(StrCat(head, kAfterPreamble), pass, unit, "alone");
  // A preamble's own poison would be lost.
  SetInput(pass.action, kPoison, StrCat(poisoned, "#pragma GCC poison poison\n"));
  Append(pass.action.argv, {"-imacros", kPoison});
  form.macros_after = MacroStep(pass, unit, head, "-dM", "after");
  form.definitions_after = MacroStep(std::move(pass), unit, head, "-dD", "definitions");
  form.definitions = std::move(definitions);
  form.text = "preamble.ii";
  form.macros = "macros.h";
  form.files = "files.d";
  form.kept = form.macros_after;
  Append(form.kept.action.argv, {"kernix-preamble", BuildId()});  // another kernixd may keep it in another way
  form.kept.action.outputs = {form.text, form.macros, form.files};
  form.kept.reuse = Reuse{.dependencies = {form.files}};
  return form;
}

// A header that defines the macros of flags (language::HeaderWith()), taken apart.
struct FlagMacros {
  std::string definitions;  // their directives alone
  std::string poisoned;     // directives that make any use of their names an error
  std::string rest;         // the header without them, of as many lines
};

// nullopt if there are none, or if they are not one line each.
std::optional<FlagMacros> FindFlagMacros(std::string_view header) {
  FlagMacros macros;
  for (const absl::string_view text : absl::StrSplit(ToAbsl(header), '\n')) {
    std::string line(ToStd(text));
    if (line.ends_with('\\')) return std::nullopt;
    const bool is_guard = line.ends_with(language::kRuntimeHeaderGuard);
    for (const std::string_view directive : {"#define ", "#undef "}) {
      if (is_guard || !line.starts_with(directive)) continue;
      StrAppend(&macros.definitions, line, "\n");
      StrAppend(&macros.poisoned, "#pragma GCC poison ", NameIn(line, directive), "\n");
      line.clear();
    }
    StrAppend(&macros.rest, line, "\n");
  }
  return macros.definitions.empty() ? std::nullopt : std::optional<FlagMacros>(std::move(macros));
}

// By name: `#define NAME(a) ...`.
std::map<std::string_view, std::string_view> Definitions(std::string_view list) {
  std::map<std::string_view, std::string_view> definitions;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(list), '\n')) {
    const std::string_view name = NameIn(ToStd(line));
    if (!name.empty()) definitions[name] = ToStd(line);
  }
  return definitions;
}

// The flags of a line marker, `# 7 "name" 1 3 4`, without those that say that a file begins or ends.
std::string_view FlagsOfMarker(std::string_view line) {
  std::string_view flags = line.substr(std::min(line.rfind('"'), line.size() - 1) + 1);
  if (flags.starts_with(" 1") || flags.starts_with(" 2")) flags.remove_prefix(2);
  return flags;
}

// For each directive the flags of the header that it was last in: " 3 4" for one of the system.
std::map<std::string_view, std::string_view> FlagsOfDefinitions(std::string_view text) {
  std::map<std::string_view, std::string_view> found;
  std::string_view flags;
  for (const absl::string_view view : absl::StrSplit(ToAbsl(text), '\n')) {
    const std::string_view line = ToStd(view);
    if (line.starts_with("# ")) flags = FlagsOfMarker(line);
    if (!NameIn(line).empty()) found[line] = flags;
  }
  return found;
}

}  // namespace

std::optional<PreamblePass> SplitPass(const Phases& phases, size_t pass) {
  Step plain = phases.preprocess[pass];
  const exec::InputFile* const input = FindInput(plain.action, phases.unit);
  if (input == nullptr) return std::nullopt;
  const std::string unit(*input->content);
  const std::optional<language::LeadingIncludes> leading = language::FindLeadingIncludes(unit, phases.unit);
  if (!leading || LooksBack(std::string_view(unit).substr(leading->end))) return std::nullopt;

  PreamblePass split{.unit = phases.unit,
                     .next_line = leading->next_line,
                     .code_line = leading->code_line,
                     .macros_before = {},
                     .forms = {},
                     .rest = plain};
  if (!RemoveRuntimeHeader(split.rest.action.argv)) return std::nullopt;
  // The last line tells whether a macro has used the counter, as the preamble may have done.
  SetInput(split.rest.action, phases.unit,
           StrCat("#line ", leading->next_line, "\n", std::string_view(unit).substr(leading->end), "\n#line 1 \"",
                  kEndOfUnit, "\"\n__COUNTER__\n"));
  Append(split.rest.action.argv, {"-include", kPreambleMacros});

  const std::string head = unit.substr(0, leading->end);
  std::erase_if(plain.action.inputs, [](const exec::InputFile& file) { return !MayBeOfHead(file.path); });
  const std::string flags_header = StrCat(kMacroFolder, "/", language::kRuntimeHeader);
  const exec::InputFile* const flags = FindInput(plain.action, flags_header);
  if (const auto macros = flags == nullptr ? std::nullopt : FindFlagMacros(*flags->content)) {
    Step any_values = plain;
    SetInput(any_values.action, flags_header, macros->rest);
    split.forms.push_back(MakeForm(std::move(any_values), phases.unit, head, macros->poisoned, macros->definitions));
  }
  split.forms.push_back(MakeForm(plain, phases.unit, head, "", ""));
  RemoveRuntimeHeader(plain.action.argv);
  split.macros_before = MacroStep(std::move(plain), phases.unit, "", "-dM", "before");
  return split;
}

std::optional<std::string> MacrosToAdd(std::string_view before, std::string_view after, std::string_view definitions,
                                       bool ends_in_system_header) {
  const std::map<std::string_view, std::string_view> old = Definitions(before), now = Definitions(after);
  const std::map<std::string_view, std::string_view> flags = FlagsOfDefinitions(definitions);
  std::string undefined;
  std::map<std::string_view, std::string> by_flags = {{" 3 4", ""}, {" 3", ""}, {"", ""}};
  for (const auto& [name, directive] : old) {
    const auto found = now.find(name);
    if (found == now.end() || found->second != directive) StrAppend(&undefined, "#undef ", name, "\n");
  }
  for (const auto& [name, directive] : now) {
    const auto known = old.find(name);
    if (known != old.end() && known->second == directive) continue;
    const auto found = flags.find(directive);
    const auto group = found == flags.end() ? by_flags.end() : by_flags.find(found->second);
    if (group == by_flags.end()) return std::nullopt;
    StrAppend(&group->second, directive, "\n");
  }
  const auto marker = [](std::string_view of) { return StrCat("# 1 \"", kPreambleMacros, "\"", of, "\n"); };
  // The user's own come last: below their marker, a compiler that is to be pedantic warns of another one. The macros
  // that the preamble has pushed cannot be popped.
  return StrCat("#pragma GCC system_header\n", ends_in_system_header ? ";\n" : "", undefined, marker(" 3 4"),
                by_flags[" 3 4"], marker(" 3"), by_flags[" 3"], marker(""), by_flags[""],
                "#pragma GCC poison pop_macro\n", ends_in_system_header ? "" : ";\n");
}

std::optional<std::string_view> RestText(const PreamblePass& pass, std::string_view made) {
  const std::string first_marker = StrCat("\n# ", pass.next_line, "\n");
  const std::string end_marker = StrCat("\n# 1 \"", kEndOfUnit, "\"\n");
  const size_t first = made.find(first_marker), end = made.rfind(end_marker);
  if (first == std::string_view::npos || end == std::string_view::npos || end < first) return std::nullopt;
  if (made.substr(end + end_marker.size()) != "0\n") return std::nullopt;  // __COUNTER__ was used
  const size_t begin = first + first_marker.size();
  return made.substr(begin, std::max(end + 1, begin) - begin);
}

bool EndsInSystemHeader(std::string_view preprocessed) {
  bool is_system = false;  // the header that is read
  bool was_system = false;
  for (const absl::string_view view : absl::StrSplit(ToAbsl(preprocessed), '\n')) {
    const std::string_view line = ToStd(view);
    if (line.starts_with("# ")) {
      is_system = FlagsOfMarker(line).starts_with(" 3");
    } else if (line.find_first_not_of(' ') != std::string_view::npos) {
      was_system = is_system;
    }
  }
  return was_system;
}

std::optional<std::string_view> PreambleText(const PreamblePass& pass, std::string_view made) {
  // After a token of a system's header, the preprocessor says once more where it is.
  const std::string again = StrCat("\n# ", pass.next_line, "\n", kAfterPreamble);
  for (const std::string_view rest : {std::string_view(kAfterPreamble), std::string_view(again)}) {
    if (made.ends_with(StrCat("\n# ", pass.next_line, " 2\n", rest))) return made.substr(0, made.size() - rest.size());
  }
  return std::nullopt;
}

const exec::InputFile* FindInput(const exec::Action& action, const std::string& path) {
  for (const exec::InputFile& input : action.inputs) {
    if (input.path == path && input.content != nullptr) return &input;
  }
  return nullptr;
}

void SetInput(exec::Action& action, const std::string& path, std::string_view text) {
  std::erase_if(action.inputs, [&](const exec::InputFile& input) { return input.path == path; });
  action.inputs.push_back(exec::MakeInput(path, text));
}

std::string_view NameIn(std::string_view line, std::string_view directive) {
  if (!line.starts_with(directive)) return "";
  line.remove_prefix(directive.size());
  return line.substr(0, line.find_first_of(" ("));
}

}  // namespace kernix::build
