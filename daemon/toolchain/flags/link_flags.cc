// SPDX-License-Identifier: Apache-2.0
//
// Flags of the link, which the host compiler does for both languages. Libraries and objects outside the compiler and
// the toolkit are staged under names of our own, so that only their content counts and no user's folder gets into the
// artifact.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/flag_table.h"
#include "common/flags/link_file.h"
#include "daemon/toolchain/flags/tool_flags.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::toolchain {
namespace {

using flags::Flag;
using flags::Meaning;

bool IsSharedLibrary(const std::string& name) {
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

// A shared library keeps its name, because programs request it by that name when it is loaded. Other names may also be
// passed to nvcc.
std::string StagedName(std::string name) {
  if (IsSharedLibrary(name)) return name;
  for (char& c : name) {
    if (!IsHarmlessWord(StrCat("x", std::string_view(&c, 1)))) c = '_';
  }
  return name.starts_with('@') || name.starts_with('~') ? StrCat("_", name) : name;
}

class LinkFlags {
 public:
  LinkFlags(FlagContext& context, const std::vector<std::string>& words)
      : context_(context), flags_(flags::ReadAll(flags::kCompilerAtLink, words)) {}

  absl::Status Check() {
    KERNIX_RETURN_IF_ERROR(ReadFolders());
    for (size_t i = 0; i < flags_.size();) {
      if (flags_[i].meaning() == Meaning::kLinkerFlags) {
        KERNIX_RETURN_IF_ERROR(CheckLinkerFlags(i));
      } else {
        KERNIX_RETURN_IF_ERROR(CheckOne(flags_[i++]));
      }
    }
    return absl::OkStatus();
  }

 private:
  // Runs first: -L affects every -l, also earlier ones.
  absl::Status ReadFolders() {
    for (const Flag& flag : flags_) {
      if (flag.meaning() != Meaning::kLibraryPath) continue;
      if (flag.lacks_value) return RefuseFlag(flag.text(), kValueMissing);
      KERNIX_RETURN_IF_ERROR(CheckUser(context_, flag, flag.text()));
      if (!flag.value.starts_with("/")) return RefuseFlag(flag.text(), "give the folder's absolute path");
      folders_.push_back(flag.value);
    }
    return absl::OkStatus();
  }

  absl::Status CheckOne(const Flag& flag) {
    if (flag.meaning() == Meaning::kLibraryPath) return absl::OkStatus();
    if (flag.meaning() == Meaning::kLibrary) {
      return flag.lacks_value ? RefuseFlag(flag.text(), kValueMissing) : AddLibrary(flag.value);
    }
    if (flag.rule == nullptr && !flag.text().starts_with("-")) return AddFile(flag.text());
    return CheckHostFlag(context_, flag, context_.result.link);
  }

  // Checks adjacent linker flags together, because a word of one may be the value of the flag before it. Flags that are
  // not adjacent are checked separately, so that nobody needs to know how the linker would combine them. Moves `i` past
  // the checked flags.
  absl::Status CheckLinkerFlags(size_t& i) {
    std::vector<std::string> words;
    std::vector<std::string> texts;  // the text of the flag to which each word belongs
    for (; i < flags_.size() && flags_[i].meaning() == Meaning::kLinkerFlags; ++i) {
      const Flag& flag = flags_[i];
      if (flag.lacks_value) return RefuseFlag(flag.text(), kValueMissing);
      const std::vector<std::string> pieces = absl::StrSplit(flag.value, ',');
      words.insert(words.end(), pieces.begin(), pieces.end());
      texts.resize(words.size(), absl::StrJoin(flag.words, " "));
      Pass({StrCat("-Wl,", flag.value)});
    }
    for (size_t next = 0; next < words.size();) {
      const std::string& text = texts[next];
      KERNIX_RETURN_IF_ERROR(CheckLinkerFlag(text, flags::Read(flags::kLinker, words, next)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckLinkerFlag(const std::string& text, const Flag& flag) {
    for (const std::string& word : flag.words) KERNIX_RETURN_IF_ERROR(CheckHostWord(context_, text, word));
    if (flag.lacks_value) return RefuseFlag(text, kValueMissing);
    if (flag.meaning() == Meaning::kStaticLibraries) static_only_ = true;
    if (flag.meaning() == Meaning::kSharedLibraries) static_only_ = false;
    KERNIX_RETURN_IF_ERROR(CheckUser(context_, flag, text));
    return CheckNamesNoFile(flag, text);
  }

  // -lNAME: searches the user's folders first, then the compiler's own, the toolkit's, the linker's.
  absl::Status AddLibrary(const std::string& name) {
    if (name.find('/') != std::string::npos) return RefuseFlag("-l" + name, "a library's name cannot contain '/'");
    KERNIX_RETURN_IF_ERROR(CheckHostWord(context_, "-l" + name, name));
    // The runtime is linked statically anyway, and what a link needs of the driver comes with it.
    const bool comes_anyway = name == "cudart" || name == "cuda";
    if (comes_anyway && context_.nvcc()) return absl::OkStatus();
    for (size_t i = 0; i < folders_.size(); ++i) {
      if (const auto found = FindLibrary({folders_[i]}, name)) return AddStaged(StrCat("L", i), *found);
    }
    if (const auto found = FindLibrary(context_.toolchain.host.library_directories, name)) {
      return AddKnown("-l" + name, *found);
    }
    if (context_.toolchain.cuda) {
      const std::vector<std::string>& toolkit = context_.toolchain.cuda->library_directories;
      if (const auto found = FindLibrary(toolkit, name)) return AddKnown("-l" + name, *found);
      if (const auto found = FindVersioned(toolkit, name)) return AddKnown("-l:" + Basename(*found), *found);
    }
    for (const std::string& folder : flags::kLinkersOwnFolders) {
      if (const auto found = FindLibrary({folder}, name)) return AddStaged("L", *found);
    }
    return PassUnknown(name);
  }

  // The linker will report that the library is missing.
  absl::Status PassUnknown(const std::string& name) {
    if (context_.toolchain.described != nullptr) {
      return RefuseFlag("-l" + name,
                        "the key covers its content, and this node, which has no compiler, has no such library in the "
                        "described toolchain's folders: install it there, or name its folder with -L");
    }
    Pass({"-l" + name});
    return absl::OkStatus();
  }

  std::optional<std::string> FindLibrary(const std::vector<std::string>& folders, const std::string& name) {
    for (const std::string& folder : folders) {
      if (name.starts_with(":")) {
        if (auto found = FindFile(context_.env, {folder}, name.substr(1))) return found;
        continue;
      }
      std::optional<std::string> shared = FindFile(context_.env, {folder}, StrCat("lib", name, ".so"));
      if (shared && !static_only_) return shared;
      if (auto found = FindFile(context_.env, {folder}, StrCat("lib", name, ".a"))) return found;
    }
    return std::nullopt;
  }

  // Wheels have libcublas.so.13, but no libcublas.so.
  std::optional<std::string> FindVersioned(const std::vector<std::string>& folders, const std::string& name) {
    const std::string prefix = StrCat("lib", name, ".so.");
    for (const std::string& folder : folders) {
      const absl::StatusOr<std::vector<std::string>> names = context_.env.ListDirectory(folder);
      if (!names.ok()) continue;
      const auto found =
          std::find_if(names->begin(), names->end(), [&](const std::string& n) { return n.starts_with(prefix); });
      if (found != names->end()) return JoinPath(folder, *found);
    }
    return std::nullopt;
  }

  // Adds a library of the compiler or the toolkit.
  absl::Status AddKnown(const std::string& flag, const std::string& path) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, DigestOfFile(context_, flag, path));
    context_.result.files.push_back({"", path, digest});
    Pass({flag});
    return absl::OkStatus();
  }

  // Adds an object or a library that is named by its path.
  absl::Status AddFile(const std::string& path) {
    if (context_.shared()) return RefuseFlag(path, flags::kNamesFile);
    if (!path.starts_with("/")) return RefuseFlag(path, "give the file's absolute path");
    return AddStaged(StrCat("F", context_.result.files.size()), path);
  }

  absl::Status AddStaged(const std::string& place, const std::string& path) {
    const flags::LinkFile file = flags::LookAtLinkFile(context_.env, path);
    if (file.is_thin_archive) {
      return RefuseFlag(path, "it is a thin archive, whose members are other files: make it by ar without T");
    }
    for (const std::string& other : file.other_files) {
      KERNIX_ASSIGN_OR_RETURN(const Digest digest, DigestOfFile(context_, path, other));
      context_.result.files.push_back({"", other, digest});
    }
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, DigestOfFile(context_, path, path));
    const std::string folder = StrCat("flag-files/", place);
    const std::string name = StagedName(Basename(path));
    context_.result.files.push_back({JoinPath(folder, name), path, digest});
    // By name, not by path: the artifact then requests a shared library without a soname by its file name.
    Pass(IsSharedLibrary(name) ? std::vector<std::string>{"-L" + folder, "-l:" + name}
                               : std::vector<std::string>{JoinPath(folder, name)});
    return absl::OkStatus();
  }

  void Pass(const std::vector<std::string>& words) {
    context_.result.link.insert(context_.result.link.end(), words.begin(), words.end());
  }

  FlagContext& context_;
  const std::vector<Flag> flags_;
  std::vector<std::string> folders_;
  bool static_only_ = false;  // -Bstatic is in effect
};

// Refuses what cannot be told any more once the flags are translated for the host compiler.
absl::Status CheckAsWritten(const flags::Table& table, const std::vector<std::string>& words) {
  for (const Flag& flag : flags::ReadAll(table, words)) {
    if (flag.lacks_value && flag.meaning() != Meaning::kNothingMore) return RefuseFlag(flag.text(), kValueMissing);
    if (flag.meaning() == Meaning::kCudart && flag.value != "static") return RefuseFlag(flag.text(), kCudartIsStatic);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLinkFlags(FlagContext& context, const std::vector<std::string>& flags) {
  KERNIX_RETURN_IF_ERROR(CheckAsWritten(*context.language.link_flags, flags));
  const std::vector<std::string> translated = context.language.host_words_at_link(flags);
  const size_t definitions = context.result.definitions.size();
  KERNIX_RETURN_IF_ERROR(LinkFlags(context, translated).Check());
  context.result.definitions.resize(definitions);  // macros have no effect on a link
  return absl::OkStatus();
}

}  // namespace kernix::toolchain
