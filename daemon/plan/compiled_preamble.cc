// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/compiled_preamble.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

constexpr char kName[] = "preamble.h";
constexpr char kPath[] = "kernix-compiled/preamble.h";
constexpr char kHeader[] = "kernix-compiled/preamble.h.gch";
constexpr char kDependencies[] = "kernix-compiled/preamble.d";
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

// Whether the pragmas of a preprocessed text change nothing behind its end.
bool EndsAsItBegan(std::string_view text) {
  OpenPragmas open;
  for (const absl::string_view view : absl::StrSplit(ToAbsl(text), '\n')) {
    const std::string_view line = ToStd(absl::StripLeadingAsciiWhitespace(view));
    if (line.starts_with('#') && line.find("pragma") != std::string_view::npos && !Count(line, open)) return false;
  }
  return open == OpenPragmas() && text.find("_Pragma") == std::string_view::npos;
}

Step PreambleStep(const Step& host_compile, const std::string& host_text, std::string_view text) {
  Step step = host_compile;
  exec::Action& action = step.action;
  action.step = "compile a preamble";
  std::replace(action.argv.begin(), action.argv.end(), host_text, std::string(kPath));
  action.inputs = {exec::MakeInput(kPath, text)};
  action.outputs = {kHeader, kDependencies};
  action.memory_estimate_bytes = kMemory;
  step.reuse = Reuse{.dependencies = {kDependencies}};
  step.object.clear();
  return step;
}

}  // namespace

std::optional<SplitHostCompile> SplitAfterPreamble(const Step& host_compile, const std::string& host_text,
                                                   std::string_view next_line) {
  SplitHostCompile split{.preamble = {}, .rest = host_compile.action};
  const auto input = std::find_if(split.rest.inputs.begin(), split.rest.inputs.end(),
                                  [&](const exec::InputFile& each) { return each.path == host_text; });
  if (input == split.rest.inputs.end() || input->content == nullptr) return std::nullopt;
  const exec::Content text = input->content;
  const std::optional<size_t> end = FindLineOrLater(*text, next_line);
  if (!end || !EndsAsItBegan(std::string_view(*text).substr(0, *end))) return std::nullopt;
  split.preamble = PreambleStep(host_compile, host_text, std::string_view(*text).substr(0, *end));
  Words& argv = split.preamble.action.argv;
  if (!SetValue(argv, "-x", "c++-header") || !SetValue(argv, "-o", kHeader) || !SetValue(argv, "-MF", kDependencies)) {
    return std::nullopt;
  }
  *input = exec::MakeInput(host_text, std::string_view(*text).substr(*end));
  split.rest.argv.insert(split.rest.argv.end(), {"-include", kPath});
  return split;
}

std::vector<exec::InputFile> CompiledPreambleFiles(exec::Content header) {
  // The compiler reads this one if the precompiled header does not fit.
  return {exec::MakeInput(kName, std::string_view("#error the precompiled header does not fit\n")),
          exec::MakeInput(StrCat(kName, ".gch"), std::move(header))};
}

const std::string& CompiledHeaderOf(const Step& preamble) { return preamble.action.outputs.front(); }

}  // namespace kernix::build
