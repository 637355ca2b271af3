// SPDX-License-Identifier: Apache-2.0
#include "client/load/compile_flags.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/tables.h"
#include "common/flags/two_flags.h"

namespace kernix {
namespace {

using flags::Flag;
using flags::Meaning;

// nvcc accepts comma-separated lists.
std::vector<std::string> PathsOf(Language language, const Flag& flag) {
  if (language != Language::kCuda) return {flag.value};
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
bool TakeOut(Language language, const Flag& flag, SortedFlags& sorted) {
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

}  // namespace

absl::StatusOr<SortedFlags> SortFlags(Language language, const std::vector<std::string>& words) {
  SortedFlags sorted;
  const flags::Table& table = language == Language::kCuda ? flags::kNvcc : flags::kCompiler;
  for (const Flag& flag : flags::ReadAll(table, words)) {
    KERNIX_RETURN_IF_ERROR(flags::CheckIsOneFlag(table, flag));
    if (!TakeOut(language, flag, sorted)) {
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

}  // namespace kernix
