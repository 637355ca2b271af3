// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/compiled_preamble.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "daemon/language/read/leading_includes.h"

namespace kernix::build {
namespace {

constexpr char kName[] = "preamble.h";
constexpr char kIncluded[] = "kernix-compiled/preamble.h";
constexpr char kHeader[] = "kernix-compiled/preamble.h.gch";
constexpr char kPreprocessed[] = "kernix-compiled/preamble.ii";
constexpr uint64_t kMemory = 1ull << 30;

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

// What a compiler has open at the end of a text.
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

// Beside the text whose place it takes, since `#include "..."` looks there.
std::string PathOfPreamble(const std::string& text) { return JoinPath(Dirname(text), kName); }

// Makes a step of the compile's command, with `preamble` in the place of the text that it compiles. nullopt if the
// command is not of a form that we know.
std::optional<Step> PreambleStep(const Step& compile, const std::string& text, std::string_view preamble,
                                 const std::string& output) {
  const std::string path = PathOfPreamble(text);
  const std::string dependencies = StrCat(output, ".d");
  Step step = compile;
  exec::Action& action = step.action;
  action.step = "learn a preamble";
  std::replace(action.argv.begin(), action.argv.end(), text, path);
  action.inputs = {exec::MakeInput(path, preamble)};
  action.outputs = {output, dependencies};
  action.memory_estimate_bytes = kMemory;
  step.reuse = Reuse{.dependencies = {dependencies}};
  step.object.clear();
  const bool is_known = SetValue(action.argv, "-o", output) && SetValue(action.argv, "-MF", dependencies);
  return is_known ? std::optional(std::move(step)) : std::nullopt;
}

// The input of that path; its content is there.
exec::InputFile* FindInput(exec::Action& action, const std::string& path) {
  for (exec::InputFile& input : action.inputs) {
    if (input.path == path && input.content != nullptr) return &input;
  }
  return nullptr;
}

std::optional<SplitCompile> Split(const Step& compile, const std::string& path, std::string_view preamble,
                                  std::string_view rest) {
  std::optional<Step> step = PreambleStep(compile, path, preamble, kHeader);
  if (!step) return std::nullopt;
  SplitCompile split{.preamble = *std::move(step), .preprocess = nullptr, .rest = compile.action};
  *FindInput(split.rest, path) = exec::MakeInput(path, rest);
  split.rest.argv.insert(split.rest.argv.end(), {"-include", kIncluded});
  return split;
}

}  // namespace

bool LeavesNothingOpen(std::string_view preprocessed) {
  OpenPragmas open;
  for (const absl::string_view view : absl::StrSplit(ToAbsl(preprocessed), '\n')) {
    const std::string_view line = ToStd(absl::StripLeadingAsciiWhitespace(view));
    if (line.starts_with('#') && line.find("pragma") != std::string_view::npos && !Count(line, open)) return false;
  }
  return open == OpenPragmas() && preprocessed.find("_Pragma") == std::string_view::npos;
}

std::optional<SplitCompile> SplitHostCompile(const Step& host_compile, const std::string& host_text,
                                             std::string_view next_line) {
  exec::Action action = host_compile.action;
  const exec::InputFile* const input = FindInput(action, host_text);
  if (input == nullptr || !SetValue(action.argv, "-x", "c++-header")) return std::nullopt;
  const std::string_view text = *input->content;
  const std::optional<size_t> end = FindLineOrLater(text, next_line);
  if (!end || !LeavesNothingOpen(text.substr(0, *end))) return std::nullopt;
  std::optional<SplitCompile> split = Split(host_compile, host_text, text.substr(0, *end), text.substr(*end));
  if (split) SetValue(split->preamble.action.argv, "-x", "c++-header");
  return split;
}

std::optional<SplitCompile> SplitCppCompile(const Step& compile) {
  exec::Action action = compile.action;
  const std::string& unit = action.argv.back();
  const exec::InputFile* const input = FindInput(action, unit);
  if (input == nullptr) return std::nullopt;
  const std::string_view text = *input->content;
  const std::optional<language::LeadingIncludes> leading = language::FindLeadingIncludes(text, unit);
  if (!leading) return std::nullopt;
  const std::string_view preamble = text.substr(0, leading->end);
  std::optional<SplitCompile> split =
      Split(compile, unit, preamble, StrCat("#line ", leading->next_line, "\n", text.substr(leading->end)));
  if (!split) return std::nullopt;
  for (const exec::InputFile& other : compile.action.inputs) {
    if (other.path != unit && !IsLabelledSource(other.path)) split->preamble.action.inputs.push_back(other);
  }
  Step preprocess = *PreambleStep(compile, unit, preamble, kPreprocessed);
  std::replace(preprocess.action.argv.begin(), preprocess.action.argv.end(), std::string("-c"), std::string("-E"));
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
