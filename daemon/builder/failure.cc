// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/failure.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/base/shell_words.h"
#include "common/base/strings.h"
#include "daemon/builder/failure_advice.h"
#include "daemon/plan/tool_places.h"

namespace kernix::build {
namespace {

// What linkers print about symbols and libraries, after a place like "unit.o: in function `f': unit.cc:(.text+0x1f): ".
constexpr absl::string_view kLinkPhrases[] = {"undefined reference to", "undefined symbol", "multiple definition of",
                                              "duplicate symbol",       "cannot find",      "unable to find"};

// GCC and Clang: "k.cc:3:5: error: ..."; GNU as: "k.cc:3: Error: ..."; nvcc: "k.cu(3): error: ...", "nvcc fatal   :
// ...", "ptxas error   : ...".
constexpr absl::string_view kErrorWords[] = {"error:", ": Error: ", "error :", "fatal   :", "fatal :", "error   :"};

std::string LinkError(absl::string_view line) {
  for (const absl::string_view phrase : kLinkPhrases) {
    const size_t at = line.find(phrase);
    if (at != absl::string_view::npos) return std::string(line.substr(at));
  }
  return "";
}

bool LooksLikeError(absl::string_view line) {
  return std::any_of(std::begin(kErrorWords), std::end(kErrorWords),
                     [line](absl::string_view word) { return absl::StrContains(line, word); });
}

}  // namespace

std::string FirstError(std::string_view output) {
  const std::vector<absl::string_view> lines = absl::StrSplit(ToAbsl(output), '\n');
  for (const absl::string_view line : lines) {
    if (std::string found = LinkError(line); !found.empty() && !LooksLikeError(line)) return found;
    if (LooksLikeError(line)) return std::string(absl::StripAsciiWhitespace(line));
  }
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (const auto text = absl::StripAsciiWhitespace(*line); !text.empty()) return std::string(text);
  }
  return "";
}

absl::Status StepFailure(const exec::Action& action, const exec::ActionResult& result) {
  std::string output = WithUsersNames(result.output, action.links);
  const std::string error = FirstError(output);
  const std::string advice = AdviceForFailure(error);
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::COMPILATION);
  detail.set_message(StrCat(
      action.step, " failed: ", error.empty() ? StrCat("exit code ", result.exit_code, " without a message") : error,
      advice.empty() ? "" : ". ", advice));
  detail.set_compiler_output(std::move(output));
  detail.set_command(ShellCommand(exec::LocalCommand(action)));
  detail.set_exit_code(result.exit_code);
  return MakeError(std::move(detail));
}

}  // namespace kernix::build
