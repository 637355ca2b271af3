// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/split_compile.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "daemon/language/read/leading_includes.h"
#include "daemon/plan/split_pass.h"

namespace kernix::build {
namespace {

constexpr char kName[] = "preamble.h";
constexpr char kIncluded[] = "kernix-compiled/preamble.h";
constexpr char kHeader[] = "kernix-compiled/preamble.h.gch";
constexpr char kPreprocessed[] = "kernix-compiled/preamble.ii";

using Words = std::vector<std::string>;

// Gives a flag another value. False if the command does not have the flag once.
bool SetValue(Words& argv, std::string_view flag, std::string_view value) {
  const auto found = std::find(argv.begin(), argv.end(), flag);
  if (found == argv.end() || found + 1 == argv.end() || std::count(argv.begin(), argv.end(), flag) != 1) return false;
  *(found + 1) = value;
  return true;
}

// The number that a line marker begins with: 7 of `# 7 "kernel.cu"`; 0 if there is none.
int LineOf(std::string_view marker) {
  int line = 0;
  std::from_chars(marker.data(), marker.data() + marker.size(), line);
  return line;
}

// Where the text of `next_line` (`7 "kernel.cu"`), or of a later line of that file, begins.
std::optional<size_t> FindLineOrLater(std::string_view text, std::string_view next_line) {
  constexpr std::string_view kMarker = "\n# ";
  const int first = LineOf(next_line);
  const std::string end_of_marker = StrCat(next_line.substr(next_line.find(' ')), "\n");
  for (size_t at = text.find(end_of_marker); at != std::string_view::npos; at = text.find(end_of_marker, at + 1)) {
    const size_t begin = text.rfind('\n', at);
    if (begin == std::string_view::npos || !text.substr(begin).starts_with(kMarker)) continue;
    if (LineOf(text.substr(begin + kMarker.size())) >= first) return begin + 1;
  }
  return std::nullopt;
}

// Where the lines begin that open pragmas just before a line: cudafe++ does so for a kernel that is a template.
size_t BeforeOpenedPragmas(std::string_view text, size_t line) {
  while (line > 0) {
    const size_t newline_before = line > 1 ? text.rfind('\n', line - 2) : std::string_view::npos;
    const size_t begin = newline_before == std::string_view::npos ? 0 : newline_before + 1;
    const std::string_view before = text.substr(begin, line - begin);
    const bool opens = before == "\n" || before.starts_with("#pragma GCC diagnostic push") ||
                       before.starts_with("#pragma GCC diagnostic ignored");
    if (!opens) break;
    line = begin;
  }
  return line;
}

// The constructs that are open at the end of a text.
struct OpenPragmas {
  int diagnostic = 0;
  int visibility = 0;
  int pack = 0;
  bool operator==(const OpenPragmas&) const = default;
};

// Counts a line. False for a pragma that may change the meaning of what follows: a precompiled header loses that.
bool Count(std::string_view pragma, OpenPragmas& open) {
  std::string words;  // without white space
  for (const char c : pragma) {
    if (c != ' ' && c != '\t') words += c;
  }
  const auto is = [&](std::string_view known) { return words.starts_with(StrCat("#pragma", known)); };
  if (is("GCCdiagnosticpush")) return ++open.diagnostic > 0;
  if (is("GCCdiagnosticpop")) return --open.diagnostic >= 0;
  if (is("GCCvisibilitypush")) return ++open.visibility > 0;
  if (is("GCCvisibilitypop")) return --open.visibility >= 0;
  if (is("pack(push")) return ++open.pack > 0;
  if (is("pack(pop")) return --open.pack >= 0;
  return !is("") || is("GCCdiagnosticignored") || is("GCCunroll") || is("unroll");
}

// Makes a step of the compile's command, with `preamble` in the place of the text that it compiles, under the same name
// (`__BASE_FILE__`). nullopt if the command is not of a form that we know.
std::optional<Step> PreambleStep(const Step& compile, const std::string& text, std::string_view preamble,
                                 const std::string& output) {
  const std::string dependencies = StrCat(output, ".d");
  Step step = compile;
  exec::Action& action = step.action;
  action.step = "learn a preamble";
  action.inputs = {exec::MakeInput(text, preamble)};
  action.outputs = {output, dependencies};
  step.reuse = Reuse{.dependencies = {dependencies}};
  step.object.clear();
  Words& argv = action.argv;
  if (!SetValue(argv, "-x", "c++-header")) argv.insert(argv.begin() + 1, {"-x", "c++-header"});
  const bool is_known = SetValue(argv, "-o", output) && SetValue(argv, "-MF", dependencies);
  return is_known ? std::optional(std::move(step)) : std::nullopt;
}

std::optional<SplitCompile> Split(const Step& compile, const std::string& path, std::string_view preamble,
                                  std::string_view rest) {
  std::optional<Step> step = PreambleStep(compile, path, preamble, kHeader);
  if (!step) return std::nullopt;
  SplitCompile split{.preamble = *std::move(step), .preprocess = nullptr, .rest = compile.action};
  SetInput(split.rest, path, rest);
  split.rest.argv.insert(split.rest.argv.end(), {"-include", kIncluded});
  return split;
}

// Whether a text undefines a macro that was there before it. After a precompiled header, GCC defines these anew.
bool UndefinesPredefined(std::string_view text) {
  absl::flat_hash_set<std::string> predefined;
  bool is_before = false;
  for (const absl::string_view view : absl::StrSplit(ToAbsl(text), '\n')) {
    const std::string_view line = ToStd(view);
    if (line.starts_with("# ")) {
      is_before = line.find("\"<built-in>\"") != std::string_view::npos ||
                  line.find("\"<command-line>\"") != std::string_view::npos;
    }
    if (const std::string_view name = NameIn(line); is_before && !name.empty()) predefined.emplace(name);
    if (predefined.contains(std::string(NameIn(line, "#undef ")))) return true;
  }
  return false;
}

// Whether the pragmas of a preprocessed preamble cannot change the meaning of what follows.
bool LeavesNothingOpen(std::string_view preprocessed) {
  OpenPragmas open;
  for (const absl::string_view view : absl::StrSplit(ToAbsl(preprocessed), '\n')) {
    const std::string_view line = ToStd(absl::StripLeadingAsciiWhitespace(view));
    if (line.starts_with('#') && line.find("pragma") != std::string_view::npos && !Count(line, open)) return false;
    const bool is_macro = line.starts_with("#define ");  // what becomes of it, the text shows
    if (!is_macro && line.find("_Pragma") != std::string_view::npos) return false;
  }
  return open == OpenPragmas();
}

}  // namespace

bool MayBeCompiled(std::string_view preprocessed) {
  return LeavesNothingOpen(preprocessed) && !UndefinesPredefined(preprocessed);
}

std::optional<SplitCompile> SplitHostCompile(const Step& host_compile, const std::string& host_text,
                                             std::string_view code_line) {
  const exec::InputFile* const input = FindInput(host_compile.action, host_text);
  if (input == nullptr) return std::nullopt;
  const std::string_view text = *input->content;
  const std::optional<size_t> line = FindLineOrLater(text, code_line);
  if (!line) return std::nullopt;
  const size_t end = BeforeOpenedPragmas(text, *line);
  if (!LeavesNothingOpen(text.substr(0, end))) return std::nullopt;
  return Split(host_compile, host_text, text.substr(0, end), text.substr(end));
}

std::optional<SplitCompile> SplitCppCompile(const Step& compile) {
  const std::string& unit = compile.action.argv.back();
  const exec::InputFile* const input = FindInput(compile.action, unit);
  if (input == nullptr) return std::nullopt;
  const std::string_view text = *input->content;
  const std::optional<language::LeadingIncludes> leading = language::FindLeadingIncludes(text, unit);
  if (!leading) return std::nullopt;
  const std::string_view preamble = text.substr(0, leading->end);
  std::optional<SplitCompile> split =
      Split(compile, unit, preamble, StrCat("#line ", leading->next_line, "\n", text.substr(leading->end)));
  if (!split) return std::nullopt;
  for (const exec::InputFile& other : compile.action.inputs) {
    if (other.path != unit && MayBeOfHead(other.path)) split->preamble.action.inputs.push_back(other);
  }
  Step preprocess = *PreambleStep(compile, unit, preamble, kPreprocessed);
  Words& argv = preprocess.action.argv;
  std::replace(argv.begin(), argv.end(), std::string("-c"), std::string("-E"));
  argv.emplace_back("-dD");
  preprocess.action.inputs = split->preamble.action.inputs;
  split->preprocess = std::make_shared<const Step>(std::move(preprocess));
  return split;
}

std::vector<exec::InputFile> CompiledPreambleFiles(exec::Content header) {
  // The compiler reads this one if the precompiled header does not fit.
  return {exec::MakeInput(kName, std::string_view("#error the precompiled header does not fit\n")),
          exec::MakeInput(StrCat(kName, ".gch"), std::move(header))};
}

const std::string& CompiledHeaderOf(const Step& preamble) { return preamble.action.outputs.front(); }

}  // namespace kernix::build
