// SPDX-License-Identifier: Apache-2.0
#include "client/load/compile_flags.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "common/flags/flag_table.h"
#include "common/flags/languages.h"
#include "common/flags/link_file.h"

namespace kernix {
namespace {

using flags::Flag;
using flags::Meaning;

std::vector<std::string> PathsOf(const LanguageTraits& language, const Flag& flag) {
  if (!language.lists_paths) return {flag.value};
  return absl::StrSplit(flag.value, ',', absl::SkipEmpty());
}

// The list that this flag's header folders go to. Null: the flag names no folders.
std::vector<std::string>* FoldersOf(Meaning meaning, SortedFlags& sorted) {
  if (meaning == Meaning::kIncludePath) return &sorted.include_paths;
  if (meaning == Meaning::kSystemIncludePath) return &sorted.system_include_paths;
  if (meaning == Meaning::kLastIncludePath) return &sorted.last_include_paths;
  return nullptr;
}

void Append(const std::vector<std::string>& from, std::vector<std::string>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// Removes the flag from the compiler's flags if kernix handles it itself, and returns whether it did.
bool TakeOut(const LanguageTraits& language, const Flag& flag, SortedFlags& sorted) {
  if (std::vector<std::string>* folders = FoldersOf(flag.meaning(), sorted)) {
    Append(PathsOf(language, flag), *folders);
  } else if (flag.meaning() == Meaning::kLibraryPath) {
    sorted.link.push_back(StrCat("-L", flag.value));
  } else if (flag.meaning() == Meaning::kLibrary) {
    sorted.link.push_back(StrCat("-l", flag.value));
  } else if (flag.meaning() == Meaning::kLinkerFlags) {
    Append(flag.words, sorted.link);
  } else if (flag.meaning() == Meaning::kHostCompiler) {
    sorted.host_compiler = flag.value;
  } else {
    return false;
  }
  return true;
}

bool IsFile(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  return info.ok() && info->type == FileType::kRegular;
}

std::vector<std::string> FilesOfLibrary(const std::string& folder, const std::string& name) {
  if (name.starts_with(':')) return {JoinPath(folder, name.substr(1))};
  return {JoinPath(folder, StrCat("lib", name, ".so")), JoinPath(folder, StrCat("lib", name, ".a"))};
}

// How many '<' stand at `i`, without anything between them.
size_t RunAt(const std::vector<language::Token>& tokens, size_t i) {
  size_t length = 0;
  while (i + length < tokens.size() && tokens[i + length].Is("<") &&
         (length == 0 || !tokens[i + length].space_before)) {
    ++length;
  }
  return length;
}

// What the first word of CUDA in `source` is and where, as "add.cpp:7 has '__global__'"; empty if there is none.
std::string CudaIn(const v1::Source& source) {
  const language::LexedSource lexed = language::Lex(source.text(), 0);
  size_t run = 0;
  for (size_t i = 0; i < lexed.tokens.size(); i += std::max<size_t>(run, 1)) {
    constexpr size_t kLaunch = 3;  // a conflict marker of Git is longer
    run = RunAt(lexed.tokens, i);
    const bool is_kernel = lexed.tokens[i].Is("__global__");
    if (!is_kernel && run != kLaunch) continue;
    return StrCat(source.label(), ":", lexed.tokens[i].line, " has '", is_kernel ? "__global__" : "<<<", "'");
  }
  return "";
}

}  // namespace

absl::StatusOr<SortedFlags> SortFlags(v1::Language language, const std::vector<std::string>& words) {
  SortedFlags sorted;
  const LanguageTraits& traits = TraitsOf(language);
  const flags::Table& table = *traits.compile_flags;
  for (const Flag& flag : flags::ReadAll(table, words)) {
    KERNIX_RETURN_IF_ERROR(flags::CheckIsOneFlag(table, flag));
    if (!TakeOut(traits, flag, sorted)) {
      Append(flag.words, sorted.compile);
    } else if (flag.value.empty()) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("the compiler flag ", flag.text(), " needs a value"));
    }
  }
  return sorted;
}

bool AsksForWarnings(const std::vector<std::string>& flags) {
  return std::any_of(flags.begin(), flags.end(), [](std::string_view flag) {
    const size_t at = flag.find("-W");
    if (at == std::string_view::npos || at + 2 == flag.size()) return false;
    const std::string_view what = flag.substr(at + 2);
    const bool for_another_tool = what.size() > 1 && what[1] == ',';  // -Wl,--gc-sections
    return !for_another_tool && !what.starts_with("no-");
  });
}

std::vector<Flag> HostFlags(v1::Language language, const std::vector<std::string>& compile_flags,
                            const std::vector<std::string>& link_flags) {
  const LanguageTraits& traits = TraitsOf(language);
  std::vector<Flag> read = flags::ReadAll(flags::kCompiler, traits.host_words_at_compile(compile_flags));
  for (Flag& flag : flags::ReadAll(flags::kCompilerAtLink, traits.host_words_at_link(link_flags))) {
    read.push_back(std::move(flag));
  }
  return read;
}

FlagFiles FindFlagFiles(Env& env, v1::Language language, const std::vector<std::string>& compile_flags,
                        const std::vector<std::string>& link_flags) {
  FlagFiles found;
  const std::vector<Flag> read = HostFlags(language, compile_flags, link_flags);
  for (const Flag& flag : read) {
    if (flag.meaning() == Meaning::kLibraryPath && !flag.lacks_value) found.folders.insert(flag.value);
    if (flag.meaning() == Meaning::kLibrary) {
      found.folders.insert(std::begin(flags::kLinkersOwnFolders), std::end(flags::kLinkersOwnFolders));
    }
  }
  std::vector<std::string> candidates;
  for (const Flag& flag : read) {
    if (flag.meaning() == Meaning::kFileForKey) candidates.push_back(flag.value);
    if (flag.rule == nullptr && flag.text().starts_with('/')) candidates.push_back(flag.text());
    if (flag.meaning() != Meaning::kLibrary || flag.lacks_value) continue;
    for (const std::string& folder : found.folders) {
      Append(FilesOfLibrary(folder, flag.value), candidates);
    }
  }
  for (std::string& path : candidates) {
    if (!IsFile(env, path)) continue;
    Append(flags::LookAtLinkFile(env, path).other_files, found.files);
    found.files.push_back(std::move(path));
  }
  return found;
}

absl::Status WithCudaAdvice(const v1::LoadRequest& request, const absl::Status& error) {
  if (TraitsOf(request.language()).runs_on_gpu || KindOf(error) != v1::ErrorDetail::COMPILATION) return error;
  for (const v1::Source& source : request.source()) {
    const std::string found = CudaIn(source);
    if (found.empty()) continue;
    v1::ErrorDetail detail = GetErrorDetail(error);
    detail.set_message(StrCat(detail.message(), ". ", found,
                              ", which is CUDA, but this load is C++: use load_cuda_inline or load_cuda_file"));
    return MakeError(std::move(detail));
  }
  return error;
}

}  // namespace kernix
