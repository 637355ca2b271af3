// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/preamble.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "daemon/language/read/leading_includes.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/dry_run.h"
#include "daemon/plan/plan_parts.h"

namespace kernix::build {
namespace {

constexpr char kEndOfPreamble[] = "static_assert(true, \"kernix: the unit's first #includes end here\");\n";
constexpr char kEndOfUnit[] = "kernix: the unit ends here";

// The content of an input; null if there is none.
const exec::Content* ContentOf(const exec::Action& action, const std::string& path) {
  for (const exec::InputFile& input : action.inputs) {
    if (input.path == path && input.content != nullptr) return &input.content;
  }
  return nullptr;
}

void SetInput(exec::Action& action, const std::string& path, std::string text) {
  exec::InputFile input = exec::MakeInput(path, std::move(text));
  for (exec::InputFile& old : action.inputs) {
    if (old.path == path) {
      old = std::move(input);
      return;
    }
  }
  action.inputs.push_back(std::move(input));
}

// Removes `-include cuda_runtime.h`, with which nvcc begins every unit.
bool RemoveRuntimeHeader(Command& argv) {
  const auto include = std::find(argv.begin(), argv.end(), "-include");
  if (include == argv.end() || argv.end() - include < 2 || std::count(argv.begin(), argv.end(), "-include") != 1) {
    return false;
  }
  argv.erase(include, include + 2);
  return true;
}

// A source, under its label: only diagnostics show it.
bool IsSource(const exec::InputFile& input) { return input.path.find('/') == std::string::npos; }

// A pass over another text in the unit's place that also writes the definitions of macros. `name`: of its outputs.
Step MacroStep(Step pass, const std::string& unit, std::string text, std::string_view name) {
  SetInput(pass.action, unit, std::move(text));
  pass.action.step = "learn a preamble";
  for (std::string& output : pass.action.outputs) {
    const std::string renamed = StrCat(output, ".", name);
    std::replace(pass.action.argv.begin(), pass.action.argv.end(), output, renamed);
    output = renamed;
  }
  pass.action.argv.emplace_back("-dD");
  return pass;
}

PreambleForm MakeForm(Step macros_after, std::string definitions) {
  PreambleForm form{.kept = macros_after,
                    .text = "preamble.ii",
                    .macros = "macros.h",
                    .files = "files.d",
                    .macros_after = {},
                    .definitions = std::move(definitions)};
  Append(form.kept.action.argv, {"kernix-preamble", BuildId()});  // another kernixd may mark its end in another way
  form.kept.action.outputs = {form.text, form.macros, form.files};
  form.kept.reuse = Reuse{.dependencies = {form.files}};
  form.macros_after = std::move(macros_after);
  return form;
}

// A header that defines the macros of flags (language::RuntimeHeaderWith()), taken apart.
struct FlagMacros {
  std::string definitions;  // their directives alone
  std::string poisoned;     // the header, with directives that make any use of these names an error
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
      const std::string name = line.substr(directive.size());
      line = StrCat("#pragma GCC poison ", name.substr(0, name.find_first_of(" (")));
    }
    StrAppend(&macros.poisoned, line, "\n");
  }
  return macros.definitions.empty() ? std::nullopt : std::optional<FlagMacros>(std::move(macros));
}

struct Definition {
  std::string_view directive;  // `#define NAME(a) ...`
  std::string_view flags;      // of the header that it is in, as line markers have them: " 3 4" for the system's
  bool operator==(const Definition&) const = default;
};

// The flags of a line marker, `# 7 "name" 1 3 4`, without those that say that a file begins or ends.
std::string_view FlagsOfMarker(std::string_view line) {
  std::string_view flags = line.substr(std::min(line.rfind('"'), line.size() - 1) + 1);
  if (flags.starts_with(" 1") || flags.starts_with(" 2")) flags.remove_prefix(2);
  return flags;
}

// By name, at the end of a text that has the definitions in it (-dD).
std::map<std::string_view, Definition> Definitions(std::string_view list) {
  constexpr std::string_view kDefine = "#define ", kUndef = "#undef ";
  std::map<std::string_view, Definition> definitions;
  std::string_view flags;
  for (const absl::string_view text : absl::StrSplit(ToAbsl(list), '\n')) {
    const std::string_view line = ToStd(text);
    if (line.starts_with("# ")) flags = FlagsOfMarker(line);
    if (line.starts_with(kUndef)) definitions.erase(line.substr(kUndef.size()));
    if (!line.starts_with(kDefine)) continue;
    const std::string_view rest = line.substr(kDefine.size());
    definitions[rest.substr(0, rest.find_first_of(" ("))] = {line, flags};
  }
  return definitions;
}

}  // namespace

std::optional<PreamblePass> SplitPass(const Phases& phases, size_t pass) {
  Step plain = phases.preprocess[pass];
  const exec::Content* const content = ContentOf(plain.action, phases.unit);
  if (content == nullptr) return std::nullopt;
  const std::string unit = **content;
  const std::optional<language::LeadingIncludes> leading = language::FindLeadingIncludes(unit, phases.unit);
  if (!leading) return std::nullopt;
  const std::string head = unit.substr(0, leading->end);
  const std::string rest = StrCat(kEndOfPreamble, "#line ", leading->next_line, "\n", unit.substr(leading->end));

  PreamblePass split{.unit = phases.unit, .whole = plain, .macros_before = {}, .forms = {}, .rest = plain};
  SetInput(split.whole.action, phases.unit, head + rest);
  if (!RemoveRuntimeHeader(split.rest.action.argv)) return std::nullopt;
  // Whoever uses __COUNTER__ may have used it in the preamble, too.
  SetInput(split.rest.action, phases.unit, StrCat(rest, "\n#line 1 \"", kEndOfUnit, "\"\n__COUNTER__\n"));
  Append(split.rest.action.argv, {"-imacros", kPreambleMacros});

  std::erase_if(plain.action.inputs, IsSource);
  const Step after = MacroStep(plain, phases.unit, head, "after");
  const std::string flags_header = StrCat(kMacroFolder, "/", language::kRuntimeHeader);
  const exec::Content* const flags = ContentOf(plain.action, flags_header);
  if (const auto macros = flags == nullptr ? std::nullopt : FindFlagMacros(**flags)) {
    Step any_values = after;
    SetInput(any_values.action, flags_header, macros->poisoned);
    split.forms.push_back(MakeForm(std::move(any_values), macros->definitions));
  }
  split.forms.push_back(MakeForm(after, ""));
  RemoveRuntimeHeader(plain.action.argv);
  split.macros_before = MacroStep(std::move(plain), phases.unit, "", "before");
  return split;
}

std::optional<std::string_view> PreambleText(std::string_view whole) {
  const size_t end = whole.find(kEndOfPreamble);
  if (end == std::string_view::npos) return std::nullopt;
  return whole.substr(0, end);
}

std::string MacrosToAdd(std::string_view before, std::string_view after) {
  const std::map<std::string_view, Definition> old = Definitions(before);
  const std::map<std::string_view, Definition> now = Definitions(after);
  std::string text = "#pragma GCC system_header\n";  // quiet about line markers
  for (const auto& [name, definition] : old) {
    const auto found = now.find(name);
    if (found == now.end() || found->second != definition) StrAppend(&text, "#undef ", name, "\n");
  }
  // The user's own come last: below their marker, the next one would not be below the pragma any more.
  std::map<std::string_view, std::string, std::greater<>> by_flags;
  for (const auto& [name, definition] : now) {
    const auto found = old.find(name);
    if (found != old.end() && found->second == definition) continue;
    StrAppend(&by_flags[definition.flags], definition.directive, "\n");
  }
  for (const auto& [flags, directives] : by_flags) {
    StrAppend(&text, "# 1 \"", kPreambleMacros, "\"", flags, "\n", directives);
  }
  return text;
}

std::optional<std::string_view> RestText(std::string_view rest) {
  const size_t begin = rest.find(kEndOfPreamble);
  const std::string end_marker = StrCat("\n# 1 \"", kEndOfUnit, "\"\n");
  const size_t end = rest.rfind(end_marker);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return std::nullopt;
  if (rest.substr(end + end_marker.size()) != "0\n") return std::nullopt;  // __COUNTER__ was used
  return rest.substr(begin, end + 1 - begin);
}

}  // namespace kernix::build
