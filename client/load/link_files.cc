// SPDX-License-Identifier: Apache-2.0
#include "client/load/link_files.h"

#include <string_view>

#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/flags/tables.h"

namespace kernix {
namespace {

bool IsFile(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  return info.ok() && info->type == FileType::kRegular;
}

std::vector<std::string> ValuesOf(flags::Meaning meaning, const std::vector<std::string>& link_flags) {
  std::vector<std::string> values;
  for (const flags::Flag& flag : flags::ReadAll(flags::kCompilerAtLink, link_flags)) {
    if (flag.meaning() == meaning && !flag.value.empty()) values.push_back(flag.value);
  }
  return values;
}

std::vector<std::string> FilesOfLibrary(const std::string& folder, const std::string& name) {
  if (name.starts_with(':')) return {JoinPath(folder, name.substr(1))};
  return {JoinPath(folder, StrCat("lib", name, ".so")), JoinPath(folder, StrCat("lib", name, ".a"))};
}

}  // namespace

FlagFiles FindFlagFiles(Env& env, const std::vector<std::string>& compile_flags,
                        const std::vector<std::string>& link_flags) {
  FlagFiles found{{}, ValuesOf(flags::Meaning::kLibraryPath, link_flags)};
  std::vector<std::string> candidates;
  for (const std::string& flag : compile_flags) {
    if (const size_t path = flag.find("=/"); path != std::string::npos) candidates.push_back(flag.substr(path + 1));
  }
  for (const std::string& flag : link_flags) {
    if (flag.starts_with('/')) candidates.push_back(flag);
  }
  for (const std::string& name : ValuesOf(flags::Meaning::kLibrary, link_flags)) {
    for (const std::string& folder : found.folders) {
      for (std::string& path : FilesOfLibrary(folder, name)) candidates.push_back(std::move(path));
    }
  }
  for (std::string& path : candidates) {
    if (IsFile(env, path)) found.files.push_back(std::move(path));
  }
  return found;
}

}  // namespace kernix
