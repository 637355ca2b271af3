// SPDX-License-Identifier: Apache-2.0
#include "common/flags/link_file.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix::flags {
namespace {

constexpr size_t kMostFiles = 1'000;
constexpr size_t kMostOfScript = 64 << 10;  // those of libraries have some lines

// The first bytes of a file, or of the one that a link leads to.
std::string BeginningOf(Env& env, const std::string& path) {
  const absl::StatusOr<std::string> real = env.RealPath(path);
  if (!real.ok()) return "";
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = env.OpenFile(*real);
  if (!file.ok()) return "";
  std::string text(kMostOfScript, '\0');
  text.resize((*file)->ReadAt(0, text).value_or(0));
  return text;
}

// The absolute paths in a linker script. Other files (objects, archives) have none.
std::vector<std::string> PathsIn(const std::string& text) {
  if (text.find('\0') != std::string::npos || text.starts_with("!<")) return {};
  std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \t\r\n(),;\""));
  std::erase_if(words, [](const std::string& word) { return !word.starts_with('/') || word.starts_with("/*"); });
  return words;
}

}  // namespace

LinkFile LookAtLinkFile(Env& env, const std::string& path) {
  const std::string text = BeginningOf(env, path);
  LinkFile found{.is_thin_archive = text.starts_with("!<thin>\n")};
  std::vector<std::string> named = PathsIn(text);
  while (!named.empty() && found.other_files.size() < kMostFiles) {
    std::string name = std::move(named.back());
    named.pop_back();
    const absl::StatusOr<FileInfo> info = env.Stat(name);
    if (!info.ok() || info->type != FileType::kRegular) continue;
    if (std::find(found.other_files.begin(), found.other_files.end(), name) != found.other_files.end()) continue;
    for (std::string& other : PathsIn(BeginningOf(env, name))) named.push_back(std::move(other));
    found.other_files.push_back(std::move(name));
  }
  return found;
}

}  // namespace kernix::flags
