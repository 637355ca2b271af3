// SPDX-License-Identifier: Apache-2.0
#include "common/flags/link_file.h"

#include <memory>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix::flags {
namespace {

constexpr size_t kMostOfScript = 64 << 10;  // those of libraries have some lines

std::string BeginningOf(Env& env, const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = env.OpenFile(path);
  if (!file.ok()) return "";
  std::string text(kMostOfScript, '\0');
  text.resize((*file)->ReadAt(0, text).value_or(0));
  return text;
}

}  // namespace

LinkFile LookAtLinkFile(Env& env, const std::string& path) {
  LinkFile found;
  const std::string text = BeginningOf(env, path);
  found.is_thin_archive = text.starts_with("!<thin>\n");
  const bool is_script = text.find('\0') == std::string::npos && !text.starts_with("!<");
  if (!is_script) return found;
  for (const absl::string_view word : absl::StrSplit(ToAbsl(text), absl::ByAnyChar(" \t\r\n(),;\""))) {
    std::string name(word);
    if (!name.starts_with('/') || name.starts_with("/*")) continue;
    const absl::StatusOr<FileInfo> info = env.Stat(name);
    if (info.ok() && info->type == FileType::kRegular) found.other_files.push_back(std::move(name));
  }
  return found;
}

}  // namespace kernix::flags
