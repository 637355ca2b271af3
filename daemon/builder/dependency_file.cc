// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/dependency_file.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/strings.h"
#include "common/wire/input_root.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {
namespace {

// Splits text into words as make does: "\ ", "\#" and "$$" are escapes, and a "\" before a line's end continues the
// line.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Moves past the "target:" of the first rule. False if there is none.
  bool SkipTargets() {
    while (at_ < text_.size()) {
      if (text_[at_] == ':' && (at_ + 1 == text_.size() || IsSpace(text_[at_ + 1]) || text_[at_ + 1] == '\\')) {
        ++at_;
        return true;
      }
      ++at_;
    }
    return false;
  }

  // The next word of this rule; empty at its end.
  std::string Word() {
    SkipBlanks();
    std::string word;
    while (at_ < text_.size() && !IsSpace(text_[at_]) && !AtContinuation()) word += Character();
    return word;
  }

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  bool AtContinuation() const {
    if (text_[at_] != '\\' || at_ + 1 == text_.size()) return false;
    return text_[at_ + 1] == '\n' || text_.substr(at_ + 1, 2) == "\r\n";
  }

  void SkipBlanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || text_[at_] == '\t') {
        ++at_;
      } else if (AtContinuation()) {
        at_ = text_.find('\n', at_) + 1;
      } else {
        return;
      }
    }
  }

  // One character of a word. At a backslash, handles escapes, including a run of backslashes before a blank.
  char Character() {
    const char c = text_[at_++];
    if (at_ == text_.size()) return c;
    const char next = text_[at_];
    const bool escape = (c == '\\' && (next == ' ' || next == '#' || next == '\\' || next == ':')) ||  //
                        (c == '$' && next == '$');
    return escape ? text_[at_++] : c;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// The name in quotes of a line marker. "\\" and "\"" are escapes in it.
std::optional<std::string> QuotedName(std::string_view line) {
  const size_t begin = line.find('"');
  if (begin == std::string_view::npos) return std::nullopt;
  std::string name;
  for (size_t i = begin + 1; i < line.size() && line[i] != '"'; ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) ++i;
    name += line[i];
  }
  return name;
}

// Links to the kernel headers, the include roots and the toolchain's folders.
bool IsLink(const std::vector<absl::string_view>& folders) {
  if (folders.size() == 1) return folders.front() == kKernelHeaders;
  return folders.size() == 2 && (folders.front() == kIncludeRootsFolder || folders.front() == kLinkFolder);
}

// Whether a path leaves the input root or a folder behind a link through "..", even if it comes back: the parent folder
// of such a folder is not the one that the text suggests.
bool LeavesRoot(const std::string& relative) {
  std::vector<absl::string_view> folders;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(relative), '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      folders.push_back(part);
      continue;
    }
    if (folders.empty() || IsLink(folders)) return true;
    folders.pop_back();
  }
  return false;
}

// Whether a name is two, since a tool has escaped nothing: "x\" before "/y". No folder of a request ends with a blank.
bool HidesAnother(const std::string& path) { return path.find(" /") != std::string::npos; }

}  // namespace

std::vector<std::string> ParseDependencyFile(std::string_view text) {
  Scanner scanner(text);
  std::vector<std::string> paths;
  std::set<std::string> seen;
  if (!scanner.SkipTargets()) return paths;
  for (std::string word = scanner.Word(); !word.empty(); word = scanner.Word()) {
    if (seen.insert(word).second) paths.push_back(std::move(word));
  }
  return paths;
}

std::vector<std::string> FilesOfLineMarkers(std::string_view preprocessed) {
  std::vector<std::string> files;
  std::set<std::string, std::less<>> seen;
  for (size_t at = 0; at < preprocessed.size();) {
    const size_t end = std::min(preprocessed.find('\n', at), preprocessed.size());
    const std::string_view line = preprocessed.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with("# ")) continue;
    const std::optional<std::string> file = QuotedName(line);
    if (!file || file->empty() || file->front() == '<' || file->ends_with("//") || !seen.insert(*file).second) continue;
    files.push_back(*file);
  }
  return files;
}

std::string MakeDependencyFile(std::string_view target, const std::vector<std::string>& paths) {
  std::string text = StrCat(target, ":");
  for (const std::string& path : paths) {
    text += ' ';
    for (const char c : path) {
      if (c == ' ' || c == '#' || c == '\\' || c == ':') text += '\\';
      if (c == '$') text += '$';
      text += c;
    }
  }
  return text + "\n";
}

std::vector<std::string> FilesOutsideRoot(std::string_view dependency_file) {
  std::set<std::string> files;
  for (const std::string& path : ParseDependencyFile(dependency_file)) {
    if (path.front() == '/' || LeavesRoot(path) || HidesAnother(path)) files.insert(path);
  }
  return {files.begin(), files.end()};
}

}  // namespace kernix::build
