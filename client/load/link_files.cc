// SPDX-License-Identifier: Apache-2.0
#include "client/load/link_files.h"

#include <utility>

#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/flags/host_words.h"
#include "common/flags/tables.h"

namespace kernix {
namespace {

using flags::Flag;
using flags::Meaning;

bool IsFile(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  return info.ok() && info->type == FileType::kRegular;
}

// All that the host compiler gets, when it compiles and when it links.
std::vector<Flag> HostFlags(v1::Language language, const std::vector<std::string>& compile_flags,
                            const std::vector<std::string>& link_flags) {
  const bool is_nvcc = language == v1::LANGUAGE_CUDA;
  std::vector<Flag> read =
      flags::ReadAll(flags::kCompiler, is_nvcc ? flags::HostWordsAtCompile(compile_flags) : compile_flags);
  for (Flag& flag : flags::ReadAll(flags::kCompilerAtLink, is_nvcc ? flags::HostWordsAtLink(link_flags) : link_flags)) {
    read.push_back(std::move(flag));
  }
  return read;
}

std::vector<std::string> FilesOfLibrary(const std::string& folder, const std::string& name) {
  if (name.starts_with(':')) return {JoinPath(folder, name.substr(1))};
  return {JoinPath(folder, StrCat("lib", name, ".so")), JoinPath(folder, StrCat("lib", name, ".a"))};
}

}  // namespace

FlagFiles FindFlagFiles(Env& env, v1::Language language, const std::vector<std::string>& compile_flags,
                        const std::vector<std::string>& link_flags) {
  FlagFiles found;
  const std::vector<Flag> read = HostFlags(language, compile_flags, link_flags);
  for (const Flag& flag : read) {
    if (flag.meaning() == Meaning::kLibraryPath && !flag.lacks_value) found.folders.insert(flag.value);
  }
  std::vector<std::string> candidates;
  for (const Flag& flag : read) {
    if (flag.meaning() == Meaning::kFileForKey) candidates.push_back(flag.value);
    if (flag.rule == nullptr && flag.text().starts_with('/')) candidates.push_back(flag.text());
    if (flag.meaning() != Meaning::kLibrary || flag.lacks_value) continue;
    for (const std::string& folder : found.folders) {
      for (std::string& path : FilesOfLibrary(folder, flag.value)) candidates.push_back(std::move(path));
    }
  }
  for (std::string& path : candidates) {
    if (IsFile(env, path)) found.files.push_back(std::move(path));
  }
  return found;
}

}  // namespace kernix
