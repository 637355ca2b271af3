// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/include_trace.h"

#include "common/base/strings.h"

namespace kernix::build {
namespace {

constexpr size_t kMaxBytes = 16 << 20;

// Parses ".. path", with a dot for each level. A source can make GCC count zero levels ("# 1 "x" 2"). Precompiled
// headers have another mark.
std::string_view TracedFile(std::string_view line) {
  size_t marks = line.find_first_not_of('.');
  if (marks == 0 && (line.front() == '!' || line.front() == 'x')) marks = 1;
  const bool is_file =
      marks != std::string_view::npos && marks + 1 < line.size() && line[marks] == ' ' && line[marks + 1] != ' ';
  return is_file ? line.substr(marks + 1) : std::string_view();
}

}  // namespace

void IncludeTrace::OnOutput(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    unfinished_ += text.substr(0, end);
    if (unfinished_.size() > kMaxBytes) complete_ = false;
    if (end == std::string_view::npos || !complete_) return;
    TakeLine(unfinished_);
    unfinished_.clear();
    text.remove_prefix(end + 1);
  }
}

void IncludeTrace::TakeLine(std::string_view line) {
  if (ended_) return;
  if (const std::string_view file = TracedFile(line); !file.empty()) return NoteFile(file);
  constexpr std::string_view kUnguarded = "Multiple include guards may be useful for:";
  if (line == kUnguarded) {
    lists_files_ = true;
  } else if (!lists_files_ || !seen_.contains(ToAbsl(line))) {
    messages_.Append(line);
    messages_.Append("\n");
    ended_ = line.find(kFatalError) != std::string_view::npos;
  }
}

void IncludeTrace::NoteFile(std::string_view path) {
  if (!seen_.insert(std::string(path)).second) return;
  bytes_ += path.size();
  complete_ = complete_ && bytes_ <= kMaxBytes;
  files_.emplace_back(path);
}

std::string IncludeTrace::Messages() {
  if (!unfinished_.empty()) TakeLine(unfinished_);
  unfinished_.clear();
  return messages_.Text();
}

}  // namespace kernix::build
