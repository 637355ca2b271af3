// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/dry_run.h"

#include <cctype>
#include <map>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Splits a line as a shell does, as far as nvcc's lines need it: words in blanks, double quotes, and variables.
class ShellLine {
 public:
  ShellLine(std::string_view line, const Variables& variables) : line_(line), variables_(variables) {}

  // nullopt for a line with anything else that a shell would interpret.
  std::optional<Command> Words() {
    while (at_ < line_.size()) {
      if (!Take(line_[at_++])) return std::nullopt;
    }
    if (quoted_) return std::nullopt;
    EndWord();
    return std::move(words_);
  }

 private:
  bool Take(char c) {
    if (c == '"') {
      quoted_ = !quoted_;
      in_word_ = true;
      return true;
    }
    if (c == ' ' && !quoted_) {
      EndWord();
      return true;
    }
    if (c == '$') return TakeVariable();
    constexpr std::string_view kInterpreted = "`\\'";
    constexpr std::string_view kInterpretedUnquoted = "|&;<>()*?[]#!{}\t";
    if (kInterpreted.find(c) != std::string_view::npos) return false;
    if (!quoted_ && kInterpretedUnquoted.find(c) != std::string_view::npos) return false;
    word_ += c;
    in_word_ = true;
    return true;
  }

  bool TakeVariable() {
    const size_t begin = at_;
    while (at_ < line_.size() && IsNameCharacter(line_[at_])) ++at_;
    const auto variable = variables_.find(line_.substr(begin, at_ - begin));
    if (variable == variables_.end()) return false;
    word_ += variable->second;
    in_word_ = true;
    return true;
  }

  void EndWord() {
    if (in_word_) words_.push_back(std::exchange(word_, ""));
    in_word_ = false;
  }

  const std::string_view line_;
  const Variables& variables_;
  size_t at_ = 0;
  bool quoted_ = false;
  bool in_word_ = false;
  std::string word_;
  Command words_;
};

// "NAME=value". A command's first word never holds "=".
bool ReadVariable(std::string_view line, Variables& variables) {
  size_t end = 0;
  while (end < line.size() && IsNameCharacter(line[end])) ++end;
  if (end == 0 || end == line.size() || line[end] != '=') return false;
  variables.insert_or_assign(std::string(line.substr(0, end)), std::string(line.substr(end + 1)));
  return true;
}

}  // namespace

std::optional<DryRun> ReadDryRun(std::string_view output) {
  constexpr std::string_view kMark = "#$ ";
  constexpr std::string_view kOwnWork = "-- Filter Dependencies --";
  Variables variables;
  DryRun dry_run;
  for (const absl::string_view absl_line : absl::StrSplit(ToAbsl(output), '\n')) {
    std::string_view line(absl_line.data(), absl_line.size());
    if (line.empty()) continue;
    if (!line.starts_with(kMark)) return std::nullopt;
    line.remove_prefix(kMark.size());
    if (line.starts_with(kOwnWork) || ReadVariable(line, variables)) continue;
    std::optional<Command> words = ShellLine(line, variables).Words();
    if (!words || words->empty()) return std::nullopt;
    dry_run.commands.push_back(*std::move(words));
  }
  dry_run.path = std::move(variables["PATH"]);
  return dry_run;
}

}  // namespace kernix::build
