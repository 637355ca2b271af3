// SPDX-License-Identifier: Apache-2.0
//
// Flags of the link, which the host compiler does for both languages. Libraries and objects that lie outside the
// compiler and the toolkit are staged under names of our own, so that only their content counts and no folder of
// anybody gets into the artifact.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/toolchain/flags/flag_context.h"
#include "daemon/toolchain/flags/flag_values.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::toolchain {
namespace {

constexpr std::string_view kRunPath =
    "an artifact holds no folder of anybody. Have LD_LIBRARY_PATH name the library's folder, or open the library "
    "before "
    "the module is loaded (ctypes.CDLL(path); it needs a name of its own, linked with -Wl,-soname)";
constexpr std::string_view kLinkerFile = "the linker would read or write a file that kernix cannot take into account";
constexpr std::string_view kByItself = "give it by itself, not through -Wl or -Xlinker";
constexpr std::string_view kName = "artifacts have no name of their own";

// A name that ends with '*' is a prefix.
struct LinkerRefusal {
  std::string_view match;
  std::string_view why;
};

// Words for the linker itself, with one dash; the second one of long names is taken off before.
constexpr LinkerRefusal kLinkerRefusals[] = {
    {"-rpath*", kRunPath},
    {"-R*", kRunPath},
    {"-L*", kByItself},
    {"-library*", kByItself},
    {"-l*", kByItself},
    {"-T*", kLinkerFile},
    {"-script*", kLinkerFile},
    {"-default-script*", kLinkerFile},
    {"-version-script*", kLinkerFile},
    {"-dynamic-list", kLinkerFile},
    {"-dynamic-list=*", kLinkerFile},
    {"-retain-symbols-file*", kLinkerFile},
    {"-just-symbols*", kLinkerFile},
    {"-section-ordering*", kLinkerFile},
    {"-symbol-ordering*", kLinkerFile},
    {"-Map*", kLinkerFile},
    {"-o*", kLinkerFile},
    {"-output*", kLinkerFile},
    {"-out-implib*", kLinkerFile},
    {"-dependency-file*", kLinkerFile},
    {"-plugin*", kLinkerFile},
    {"-sysroot*", kLinkerFile},
    {"-dynamic-linker*", kLinkerFile},
    {"-audit*", kLinkerFile},
    {"-depaudit*", kLinkerFile},
    {"-auxiliary*", kName},
    {"-filter*", kName},
    {"-soname*", kName},
    {"-h*", kName},
};

// What a shared kernixd lets pass, with one dash.
constexpr ListedFlag kLinkerFlags[] = {
    {"-as-needed"},
    {"-no-as-needed"},
    {"-no-undefined"},
    {"-allow-shlib-undefined"},
    {"-no-allow-shlib-undefined"},
    {"-unresolved-symbols", kWord},
    {"-gc-sections"},
    {"-no-gc-sections"},
    {"-print-gc-sections"},
    {"-E"},
    {"-eh-frame-hdr"},
    {"-whole-archive"},
    {"-no-whole-archive"},
    {"-start-group"},
    {"-end-group"},
    {"-push-state"},
    {"-pop-state"},
    {"-Bstatic"},
    {"-Bdynamic"},
    {"-Bsymbolic"},
    {"-Bsymbolic-functions"},
    {"-exclude-libs", kWords},
    {"-export-dynamic"},
    {"-strip-all"},
    {"-strip-debug"},
    {"-s"},
    {"-S"},
    {"-x"},
    {"-O0"},
    {"-O1"},
    {"-O2"},
    {"-O3"},
    {"-defsym", kPair},
    {"-wrap", kWord},
    {"-undefined", kWord},
    {"-build-id", kBare | kWord},
    {"-hash-style", kWord},
    {"-warn-*"},
    {"-no-warn-*"},
    {"-fatal-warnings"},
    {"-no-fatal-warnings"},
    {"-enable-new-dtags"},
    {"-disable-new-dtags"},
    {"-sort-common", kBare | kWord},
    {"-sort-section", kWord},
    {"-compress-debug-sections", kWord},
    {"-allow-multiple-definition"},
    {"-relax"},
    {"-no-relax"},
};

// Words that the next one belongs to, and of which kind that is.
constexpr ListedFlag kValueNext[] = {
    {"-z", kWord | kPair}, {"-exclude-libs", kWord}, {"-undefined", kWord},  {"-u", kWord},
    {"-defsym", kPair},    {"-wrap", kWord},         {"-hash-style", kWord}, {"-unresolved-symbols", kWord},
};

const ListedFlag* FindValueNext(std::string_view word) {
  const auto* found =
      std::find_if(std::begin(kValueNext), std::end(kValueNext), [&](const ListedFlag& f) { return f.name == word; });
  return found == std::end(kValueNext) ? nullptr : found;
}

bool Fits(std::string_view match, std::string_view word) {
  if (match.ends_with('*')) return word.starts_with(match.substr(0, match.size() - 1));
  return word == match;
}

bool IsSharedLibrary(const std::string& name) {
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

// A shared library keeps its name, which is what is asked for when it is loaded. All else may be told to nvcc, too.
std::string StagedName(std::string name) {
  if (IsSharedLibrary(name)) return name;
  for (char& c : name) {
    if (!IsHarmlessWord(StrCat("x", std::string_view(&c, 1)))) c = '_';
  }
  return name.starts_with('@') || name.starts_with('~') ? StrCat("_", name) : name;
}

// The word after `name` that belongs to it: joined ("-lfoo"), or the next one.
absl::StatusOr<std::string> Value(const std::vector<std::string>& flags, size_t& index, std::string_view name) {
  if (flags[index].size() > name.size()) return flags[index].substr(name.size());
  if (index + 1 == flags.size()) return RefuseFlag(flags[index], "its value is missing");
  return flags[++index];
}

class LinkFlags {
 public:
  LinkFlags(FlagContext& context, std::vector<std::string> flags) : context_(context), flags_(std::move(flags)) {}

  absl::Status Check() {
    KERNIX_RETURN_IF_ERROR(ReadFolders());
    for (size_t i = 0; i < flags_.size(); ++i) KERNIX_RETURN_IF_ERROR(CheckOne(i));
    return absl::OkStatus();
  }

 private:
  // First of all: -L counts for every -l, also an earlier one.
  absl::Status ReadFolders() {
    std::vector<std::string> rest;
    for (size_t i = 0; i < flags_.size(); ++i) {
      if (!flags_[i].starts_with("-L")) {
        rest.push_back(flags_[i]);
        continue;
      }
      const std::string flag = flags_[i];
      KERNIX_ASSIGN_OR_RETURN(const std::string folder, Value(flags_, i, "-L"));
      if (context_.shared()) return RefuseFlag(flag, "this kernixd is shared and reads no folder of a user");
      if (!folder.starts_with("/")) return RefuseFlag(flag, "give the folder's absolute path");
      folders_.push_back(folder);
    }
    flags_ = std::move(rest);
    return absl::OkStatus();
  }

  absl::Status CheckOne(size_t& i) {
    const std::string& flag = flags_[i];
    // Whatever else stands between two words for the linker, nobody should have to know what it then makes of them.
    if (!flag.starts_with("-Wl,") && flag != "-Xlinker") value_next_ = nullptr;
    if (flag.starts_with("-l")) {
      KERNIX_ASSIGN_OR_RETURN(const std::string name, Value(flags_, i, "-l"));
      return AddLibrary(name);
    }
    if (flag.starts_with("-Wl,")) return CheckLinkerWords(flag, absl::StrSplit(flag.substr(4), ','));
    if (flag == "-Xlinker") {
      KERNIX_ASSIGN_OR_RETURN(const std::string word, Value(flags_, i, flag));
      return CheckLinkerWords(flag + " " + word, absl::StrSplit(word, ','));
    }
    if (flag == "-z" || flag == "-u") {
      const std::string name = flag;
      KERNIX_ASSIGN_OR_RETURN(const std::string value, Value(flags_, i, name));
      KERNIX_RETURN_IF_ERROR(CheckValue(StrCat(name, " ", value), *FindValueNext(name), value));
      Pass({name, value});
      return absl::OkStatus();
    }
    return CheckOther(flag);
  }

  absl::Status CheckOther(const std::string& flag) {
    constexpr std::string_view kPlain[] = {
        "-static-libgcc", "-static-libstdc++", "-nostdlib", "-nodefaultlibs", "-rdynamic", "-s", "-symbolic"};
    if (std::find(std::begin(kPlain), std::end(kPlain), flag) != std::end(kPlain)) {
      Pass({flag});
      return absl::OkStatus();
    }
    if (flag.starts_with("-rpath") || flag.starts_with("-R")) return RefuseFlag(flag, kRunPath);
    if (flag.starts_with("-T")) return RefuseFlag(flag, kLinkerFile);
    if (!flag.starts_with("-") && !flag.starts_with("@")) return AddFile(flag);
    return CheckHostFlags(context_, {flag}, context_.result.link);
  }

  absl::Status CheckLinkerWords(const std::string& flag, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const ListedFlag* takes = std::exchange(value_next_, nullptr);
      KERNIX_RETURN_IF_ERROR(takes != nullptr ? CheckValue(flag, *takes, word) : CheckLinkerWord(flag, word));
    }
    Pass({StrCat("-Wl,", absl::StrJoin(words, ","))});
    return absl::OkStatus();
  }

  absl::Status CheckValue(const std::string& flag, const ListedFlag& of, const std::string& value) const {
    KERNIX_RETURN_IF_ERROR(CheckHostWord(context_, flag, value));
    if (context_.shared() && !IsOfKind(of.kinds, value)) return RefuseFlag(flag, kNotListed);
    return absl::OkStatus();
  }

  absl::Status CheckLinkerWord(const std::string& flag, const std::string& word) {
    KERNIX_RETURN_IF_ERROR(CheckHostWord(context_, flag, word));
    const bool two_dashes = word.starts_with("--") && word.size() > 3;  // "--u" is not "-u"
    const std::string name = two_dashes ? word.substr(1) : word;
    if (name == "-Bstatic" || name == "-Bdynamic") static_only_ = name == "-Bstatic";
    value_next_ = FindValueNext(name);
    if (value_next_ != nullptr) return absl::OkStatus();
    if (IsListed(kLinkerFlags, name)) return absl::OkStatus();
    for (const LinkerRefusal& refusal : kLinkerRefusals) {
      if (Fits(refusal.match, name)) return RefuseFlag(flag, refusal.why);
    }
    if (context_.shared()) return RefuseFlag(flag, kNotListed);
    return CheckUnknownFlag(context_, word);
  }

  // -lNAME: the user's folders first, then the compiler's own, then the toolkit's.
  absl::Status AddLibrary(const std::string& name) {
    if (name.find('/') != std::string::npos) return RefuseFlag("-l" + name, "a library's name holds no '/'");
    KERNIX_RETURN_IF_ERROR(CheckHostWord(context_, "-l" + name, name));
    if (name == "cudart" && context_.language == v1::LANGUAGE_CUDA)
      return absl::OkStatus();  // linked statically anyway
    for (size_t i = 0; i < folders_.size(); ++i) {
      if (const auto found = FindLibrary({folders_[i]}, name)) return AddStaged(StrCat("L", i), *found);
    }
    if (const auto found = FindLibrary(context_.toolchain.host.library_directories, name)) {
      return AddKnown("-l" + name, *found);
    }
    if (!context_.toolchain.cuda) return PassUnknown(name);
    const std::vector<std::string>& toolkit = context_.toolchain.cuda->library_directories;
    if (const auto found = FindLibrary(toolkit, name)) return AddKnown("-l" + name, *found);
    if (const auto found = FindVersioned(toolkit, name)) return AddKnown("-l:" + Basename(*found), *found);
    return PassUnknown(name);
  }

  // The linker will say that it is not there.
  absl::Status PassUnknown(const std::string& name) {
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

  // One of the compiler's or the toolkit's own.
  absl::Status AddKnown(const std::string& flag, const std::string& path) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, DigestOfFile(flag, path));
    context_.result.files.push_back({"", path, digest});
    Pass({flag});
    return absl::OkStatus();
  }

  // An object or a library that is named by its path.
  absl::Status AddFile(const std::string& path) {
    if (context_.shared()) return RefuseFlag(path, "this kernixd is shared and reads no file that a flag names");
    if (!path.starts_with("/")) return RefuseFlag(path, "give the file's absolute path");
    return AddStaged(StrCat("F", context_.result.files.size()), path);
  }

  absl::Status AddStaged(const std::string& place, const std::string& path) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, DigestOfFile(path, path));
    const std::string folder = StrCat("flag-files/", place);
    const std::string name = StagedName(Basename(path));
    context_.result.files.push_back({JoinPath(folder, name), path, digest});
    // By name and not by path: a shared library without a name of its own is then asked for by its file's name.
    Pass(IsSharedLibrary(name) ? std::vector<std::string>{"-L" + folder, "-l:" + name}
                               : std::vector<std::string>{JoinPath(folder, name)});
    return absl::OkStatus();
  }

  absl::StatusOr<Digest> DigestOfFile(const std::string& flag, const std::string& path) {
    const absl::StatusOr<Digest> digest = context_.facts.digests().Get(path);
    if (!digest.ok()) return RefuseFlag(flag, ToStd(digest.status().message()));
    return *digest;
  }

  void Pass(const std::vector<std::string>& words) {
    context_.result.link.insert(context_.result.link.end(), words.begin(), words.end());
  }

  FlagContext& context_;
  std::vector<std::string> flags_;
  std::vector<std::string> folders_;
  bool static_only_ = false;                // -Bstatic is in force
  const ListedFlag* value_next_ = nullptr;  // the linker's next word is the value of this one
};

struct NvccSpelling {
  std::string_view name;     // with one dash
  std::string_view instead;  // what goes before each piece of its value
};
constexpr NvccSpelling kNvccSpellings[] = {
    {"-linker-options", "-Wl,"}, {"-Xlinker", "-Wl,"},    {"-compiler-options", ""},
    {"-Xcompiler", ""},          {"-library-path", "-L"}, {"-library", "-l"},
};

// What nvcc's spelling of a link flag means to the host compiler. -Xlinker -rpath,/x is two words for the linker.
absl::StatusOr<std::vector<std::string>> FromNvcc(const std::vector<std::string>& flags) {
  std::vector<std::string> translated;
  for (size_t i = 0; i < flags.size(); ++i) {
    const std::string flag = flags[i].starts_with("--") ? flags[i].substr(1) : flags[i];
    const std::string name = flag.substr(0, flag.find('='));
    if (flag == "-cudart=static") continue;
    if (name == "-cudart") return RefuseFlag(flags[i], "cudart is always linked statically");
    const auto* spelling = std::find_if(std::begin(kNvccSpellings), std::end(kNvccSpellings),
                                        [&](const NvccSpelling& candidate) { return candidate.name == name; });
    if (spelling == std::end(kNvccSpellings)) {
      translated.push_back(flags[i]);
      continue;
    }
    const bool joined = name.size() < flag.size();
    if (!joined && i + 1 == flags.size()) return RefuseFlag(flags[i], "its value is missing");
    const std::string value = joined ? flag.substr(name.size() + 1) : flags[++i];
    const std::vector<std::string> pieces = absl::StrSplit(value, ',', absl::SkipEmpty());
    for (const std::string& piece : pieces) translated.push_back(StrCat(spelling->instead, piece));
  }
  return translated;
}

}  // namespace

absl::Status CheckLinkFlags(FlagContext& context, const std::vector<std::string>& flags) {
  std::vector<std::string> translated = flags;
  if (context.language == v1::LANGUAGE_CUDA) {
    KERNIX_ASSIGN_OR_RETURN(translated, FromNvcc(flags));
  }
  const size_t definitions = context.result.definitions.size();
  KERNIX_RETURN_IF_ERROR(LinkFlags(context, std::move(translated)).Check());
  context.result.definitions.resize(definitions);  // a macro means nothing to a link
  return absl::OkStatus();
}

}  // namespace kernix::toolchain
