// SPDX-License-Identifier: Apache-2.0
#include "client/load/compile_flags.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

enum class Meaning {
  kInclude,
  kSystemInclude,
  kAfterInclude,
  kForcedInclude,
  kLibraryPath,
  kLibrary,
  kLinker,
  kHostCompiler
};

// How a flag's value follows its name.
enum class Form { kAttachedOrNext, kEqualsOrNext };

struct FlagKind {
  std::string_view name;
  Meaning meaning;
  Form form;
  bool nvcc_only = false;
};

// Where one name begins another, the longer one stands first.
constexpr FlagKind kKinds[] = {
    {"-include", Meaning::kForcedInclude, Form::kEqualsOrNext},
    {"--include-path", Meaning::kInclude, Form::kEqualsOrNext, true},
    {"--include-directory", Meaning::kInclude, Form::kEqualsOrNext},
    {"-isystem", Meaning::kSystemInclude, Form::kAttachedOrNext},
    {"--system-include", Meaning::kSystemInclude, Form::kEqualsOrNext, true},
    {"-idirafter", Meaning::kAfterInclude, Form::kAttachedOrNext},
    {"-iquote", Meaning::kInclude, Form::kAttachedOrNext},
    {"-I", Meaning::kInclude, Form::kAttachedOrNext},
    {"--library-path", Meaning::kLibraryPath, Form::kEqualsOrNext},
    {"--library", Meaning::kLibrary, Form::kEqualsOrNext},
    {"-L", Meaning::kLibraryPath, Form::kAttachedOrNext},
    {"-l", Meaning::kLibrary, Form::kAttachedOrNext},
    {"-Xlinker", Meaning::kLinker, Form::kEqualsOrNext},
    {"--compiler-bindir", Meaning::kHostCompiler, Form::kEqualsOrNext, true},
    {"-ccbin", Meaning::kHostCompiler, Form::kEqualsOrNext, true},
};

// Flags of nvcc's own that a library's name could be behind "-l".
constexpr std::string_view kNoLibraries[] = {"-lineinfo", "-lto", "-ltoir", "-lib", "-link", "-ldir"};

bool IsNoLibrary(Language language, std::string_view flag) {
  const std::string_view name = flag.substr(0, flag.find('='));
  return language == Language::kCuda &&
         std::find(std::begin(kNoLibraries), std::end(kNoLibraries), name) != std::end(kNoLibraries);
}

bool Matches(const FlagKind& kind, Language language, std::string_view flag) {
  if (kind.nvcc_only && language != Language::kCuda) return false;
  if (!absl::StartsWith(ToAbsl(flag), ToAbsl(kind.name))) return false;
  const std::string_view rest = flag.substr(kind.name.size());
  return rest.empty() || kind.form == Form::kAttachedOrNext || rest.front() == '=';
}

const FlagKind* FindKind(Language language, std::string_view flag) {
  if (IsNoLibrary(language, flag)) return nullptr;
  for (const FlagKind& kind : kKinds) {
    if (Matches(kind, language, flag)) return &kind;
  }
  return nullptr;
}

class Sorter {
 public:
  Sorter(Language language, const std::vector<std::string>& flags) : language_(language), flags_(flags) {}

  absl::StatusOr<SortedFlags> Sort() && {
    while (next_ < flags_.size()) {
      const std::string& flag = flags_[next_++];
      const FlagKind* kind = FindKind(language_, flag);
      if (absl::StartsWith(flag, "-Wl,")) {
        sorted_.link.push_back(flag);
      } else if (kind == nullptr) {
        CopyThrough(flag);
      } else {
        KERNIX_ASSIGN_OR_RETURN(const std::string value, ValueOf(*kind, flag));
        Place(kind->meaning, value);
      }
    }
    return std::move(sorted_);
  }

 private:
  // A flag of another tool keeps its value beside it, whatever that looks like.
  void CopyThrough(const std::string& flag) {
    static constexpr std::string_view kWithValue[] = {
        "-Xcompiler", "-Xptxas", "-Xnvlink", "-Xpreprocessor", "-Xassembler", "-D", "-U", "-x", "-std"};
    sorted_.compile.push_back(flag);
    for (const std::string_view name : kWithValue) {
      if (flag == name && next_ < flags_.size()) sorted_.compile.push_back(flags_[next_++]);
    }
  }

  absl::StatusOr<std::string> ValueOf(const FlagKind& kind, const std::string& flag) {
    std::string value = flag.substr(kind.name.size());
    if (language_ == Language::kCuda || kind.form == Form::kEqualsOrNext) {
      if (absl::StartsWith(value, "=")) value.erase(0, 1);
    }
    if (value.empty() && flag.size() == kind.name.size() && next_ < flags_.size()) value = flags_[next_++];
    if (!value.empty()) return value;
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("the compiler flag ", flag, " lacks its value"));
  }

  // nvcc takes lists with commas.
  void AddPaths(const std::string& value, std::vector<std::string>& paths) const {
    if (language_ != Language::kCuda) return paths.push_back(value);
    for (const absl::string_view path : absl::StrSplit(value, ',', absl::SkipEmpty())) paths.emplace_back(path);
  }

  void Place(Meaning meaning, const std::string& value) {
    switch (meaning) {
      case Meaning::kInclude:
        return AddPaths(value, sorted_.include_paths);
      case Meaning::kSystemInclude:
        return AddPaths(value, sorted_.system_include_paths);
      case Meaning::kAfterInclude:
        return AddPaths(value, sorted_.after_include_paths);
      case Meaning::kForcedInclude:
        sorted_.forced_includes.push_back(value);
        sorted_.compile.insert(sorted_.compile.end(), {"-include", value});
        return;
      case Meaning::kLibraryPath:
        return sorted_.link.push_back(StrCat("-L", value));
      case Meaning::kLibrary:
        return sorted_.link.push_back(StrCat("-l", value));
      case Meaning::kLinker:
        sorted_.link.insert(sorted_.link.end(), {"-Xlinker", value});
        return;
      case Meaning::kHostCompiler:
        sorted_.host_compiler = value;
        return;
    }
  }

  const Language language_;
  const std::vector<std::string>& flags_;
  size_t next_ = 0;
  SortedFlags sorted_;
};

}  // namespace

absl::StatusOr<SortedFlags> SortFlags(Language language, const std::vector<std::string>& flags) {
  return Sorter(language, flags).Sort();
}

}  // namespace kernix
