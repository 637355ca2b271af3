// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/unit_texts.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/cxx/include_scan.h"
#include "common/cxx/lexer.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/language/read/runtime_names.h"
#include "daemon/language/spec/words.h"
#include "daemon/language/write/handler.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/slim_phases.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {
namespace {

using language::Lexer;
using language::RuntimeChoice;
using language::Token;
using language::UnitText;
using Kind = UnitText::Kind;

const RuntimeChoice kWhole = {.full = true};

bool IsBelowAny(const std::string& path, const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return IsBelow(path, NormalizePath(folder)); });
}

// Tells files apart by the names that the tools give them.
class FileKinds {
 public:
  FileKinds(const KnownRuntime& known, const std::vector<exec::InputLink>& links, const toolchain::Toolchain& toolchain)
      : known_(known), links_(links), toolchain_(toolchain) {}

  // nullopt: part of the stand-in, or no file.
  std::optional<Kind> KindOf(std::string_view name) {
    const auto found = kinds_.find(name);
    if (found != kinds_.end()) return found->second;
    return kinds_.emplace(name, FindKind(std::string(name))).first->second;
  }

 private:
  std::optional<Kind> FindKind(const std::string& name) const {
    if (name.starts_with(language::kHandlerOf) || Basename(name) == language::kHandlersHeader) return Kind::kKernix;
    if (name == "<built-in>" || name == "<command-line>" || name == "<kernix>") return std::nullopt;
    if (known_.slim_files.contains(name) || IsBelow(name, kSlimFolder)) return std::nullopt;
    if (IsBelow(name, kKernelHeaders)) return Kind::kKernix;
    const std::string path = NormalizePath(BehindLinks(name, links_));
    if (IsBelow(path, NormalizePath(toolchain_.cuda->root))) return Kind::kToolkit;
    if (IsBelowAny(path, toolchain_.cuda->include_directories)) return Kind::kToolkit;
    return IsOfCompiler(path) || known_.files.contains(name) ? Kind::kLibrary : Kind::kUser;
  }

  // The folders that host compilers have for their own headers. Others of the system may hold anybody's.
  bool IsOfCompiler(const std::string& path) const {
    const bool is_own = absl::StrContains(path, "/c++/") || absl::StrContains(path, "/lib/gcc/");
    return is_own && IsBelowAny(path, toolchain_.host.system_include_directories);
  }

  const KnownRuntime& known_;
  const std::vector<exec::InputLink>& links_;
  const toolchain::Toolchain& toolchain_;
  std::map<std::string, std::optional<Kind>, std::less<>> kinds_;
};

// Whether a macro of flags may change the runtime header itself.
bool HasMacroBeforeHeaders(const KnownRuntime& known, const exec::Action& preprocess) {
  for (const exec::InputFile& input : preprocess.inputs) {
    if (!IsBelow(input.path, kMacroFolder)) continue;
    std::deque<std::string> storage;
    Lexer lexer(*input.content, storage);
    bool names_follow = false;
    for (Token token; lexer.NextInDirective(token);) {
      if (names_follow && known.names.MayChangeHeaders(token.text)) return true;
      names_follow = token.Is("define") || token.Is("undef");
    }
  }
  return false;
}

// The place of a file in one of the action's trees; empty for any other.
std::string PlaceInTree(const exec::Action& action, const std::string& name) {
  if (action.trees == nullptr) return "";
  for (const exec::MountedTree& mounted : *action.trees) {
    const std::string folder = IsBelow(name, mounted.path) ? mounted.tree->Folder() : "";
    if (!folder.empty()) return folder + name.substr(mounted.path.size());
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> ReadFileOf(Env& env, const exec::Action& action, const toolchain::Toolchain& toolchain,
                                       const std::string& name) {
  for (const exec::InputFile& input : action.inputs) {
    if (input.path == name) return std::string(*input.content);
  }
  if (const std::string path = PlaceInTree(action, NormalizePath(name)); !path.empty()) return env.ReadFile(path);
  const std::string path = NormalizePath(BehindLinks(name, action.links));
  for (const NamedFolder& folder : ToolchainFolders(toolchain)) {
    if (IsBelow(path, folder.path)) return env.ReadFile(path);
  }
  return absl::NotFoundError(StrCat(name, " is in no known place"));
}

namespace {

std::vector<std::string> ToolkitFolders(const toolchain::Toolchain& toolchain) {
  std::vector<std::string> folders = toolchain.cuda->include_directories;
  folders.push_back(toolchain.cuda->root + "/include");
  return folders;
}

// The names by which the whole header's files can be included.
std::set<std::string> IncludableNames(const KnownRuntime& known, const std::vector<exec::InputLink>& links,
                                      const toolchain::Toolchain& toolchain) {
  std::vector<std::string> folders = ToolkitFolders(toolchain);
  const std::vector<std::string>& of_host = toolchain.host.system_include_directories;
  folders.insert(folders.end(), of_host.begin(), of_host.end());
  std::set<std::string> names;
  for (const std::string& file : known.files) {
    const std::string path = NormalizePath(BehindLinks(file, links));
    for (const std::string& folder : folders) {
      const std::string normal = NormalizePath(folder);
      if (IsBelow(path, normal)) names.insert(path.substr(normal.size() + 1));
    }
  }
  return names;
}

bool IsInAny(Env& env, const std::vector<std::string>& folders, const std::string& header) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return env.Stat(JoinPath(folder, header)).ok(); });
}

// Whether a header of the request is found in the place of one that the whole header reads. The stand-in may leave out
// the one that would read it.
bool HasHeaderInPlaceOfToolkits(Env& env, const KnownRuntime& known, const exec::Action& preprocess,
                                const toolchain::Toolchain& toolchain) {
  std::vector<std::string> folders;
  for (const std::string& word : preprocess.argv) {
    for (const std::string_view flag : {"-I", "-iquote"}) {
      if (!word.starts_with(flag)) continue;
      const std::string file = StrCat(word.substr(flag.size()), "/x");
      const std::string place = IsBelow(file, kKernelHeaders) ? "" : PlaceInTree(preprocess, file);
      if (!place.empty()) folders.push_back(Dirname(place));
    }
  }
  if (folders.empty()) return false;
  const std::set<std::string> names = IncludableNames(known, preprocess.links, toolchain);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return IsInAny(env, folders, name); });
}

// Whether the text says that it comes from a file (`#line 7 "name"`) that is none of the user's. kernix cannot tell the
// kind of the text after such a line.
bool BorrowsAName(std::string_view text, FileKinds& kinds) {
  std::deque<std::string> storage;
  Lexer lexer(text, storage);
  bool is_line = false;
  for (Token token; lexer.NextInDirective(token);) {
    if (token.starts_directive) is_line = false;
    if (token.Is("line") || token.kind == language::TokenKind::kNumber) is_line = true;
    if (!is_line || token.text.size() < 3 || token.text.front() != '"' || token.text[1] == '<') continue;
    const std::string_view name = token.text.substr(1, token.text.size() - 2);
    if (kinds.KindOf(name) != Kind::kUser) return true;
  }
  return false;
}

std::vector<std::string> IncludedNames(const Phases& phases) {
  std::vector<std::string> names;
  for (const exec::InputFile& input : phases.preprocess.front().action.inputs) {
    if (!IsSourceCopy(input.path)) continue;
    for (const ScannedInclude& include : ScanIncludes(*input.content).includes) names.push_back(include.target.name);
  }
  return names;
}

// Whether the whole header is needed whatever the preprocessor reads.
bool NeedsWhole(Env& env, const KnownRuntime& known, const exec::Action& preprocess,
                const toolchain::Toolchain& toolchain) {
  return HasMacroBeforeHeaders(known, preprocess) || HasHeaderInPlaceOfToolkits(env, known, preprocess, toolchain);
}

// A guess reads these texts: the sources, and all headers of the request, which may include each other.
struct Written {
  std::vector<exec::Content> contents;
  std::vector<UnitText> texts;
  std::set<std::string, std::less<>> names;  // by which sources can include the headers
};

// Of headers. More are not worth their time: if they need all of the runtime header, the stand-in is useless.
constexpr size_t kMostRead = 256 << 10;

// False if they cannot be read.
bool AddHeaders(const exec::Action& preprocess, Written& written) {
  if (preprocess.trees == nullptr) return true;
  size_t bytes = 0;
  for (const exec::MountedTree& mounted : *preprocess.trees) {
    if (mounted.path == kKernelHeaders || mounted.tree == nullptr) continue;
    for (const exec::InputFile& file : mounted.tree->Files()) {
      const absl::StatusOr<exec::Content> content = mounted.tree->Load(file);
      if (!content.ok()) return false;
      bytes += (*content)->size();
      if (bytes > kMostRead) return false;
      written.contents.push_back(*content);
      written.texts.push_back({**content});
      for (std::string_view name = file.path; !name.empty();) {
        written.names.emplace(name);
        const size_t slash = name.find('/');
        name.remove_prefix(slash == name.npos ? name.size() : slash + 1);
      }
    }
  }
  return true;
}

// Whether some of these texts include a header of the toolkit that is none of them, nor of the host compiler, the
// runtime header or kernix. What such a one takes, no guess sees.
bool IncludesUnseenHeader(Env& env, const KnownRuntime& known, const exec::Action& preprocess, const Written& written,
                          const toolchain::Toolchain& toolchain) {
  const std::set<std::string> of_runtime = IncludableNames(known, preprocess.links, toolchain);
  const std::vector<std::string> of_toolkit = ToolkitFolders(toolchain);
  std::set<std::string> harmless;
  for (const UnitText& text : written.texts) {
    for (const ScannedInclude& include : ScanIncludes(text.text).includes) {
      const std::string& name = include.target.name;
      const bool is_harmless = written.names.contains(name) || name.starts_with("brainevent/") ||
                               of_runtime.contains(name) || harmless.contains(name) ||
                               IsInAny(env, toolchain.host.system_include_directories, name) ||
                               !IsInAny(env, of_toolkit, name);  // it is nowhere
      if (!is_harmless) return true;
      harmless.insert(name);
    }
  }
  return false;
}

// Of kernix's own headers, only the half types take what no source names.
bool UsesHalf(const Phases& phases) {
  const std::vector<exec::InputFile>& inputs = phases.preprocess.front().action.inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](const exec::InputFile& input) {
    return input.path == phases.unit && language::HasText(*input.content, "#define KERNIX_USES_HALF");
  });
}

}  // namespace

RuntimeChoice GuessRuntime(Env& env, const KnownRuntime& known, const Phases& phases,
                           const toolchain::Toolchain& toolchain) {
  const exec::Action& preprocess = phases.preprocess.front().action;
  if (UsesHalf(phases) || NeedsWhole(env, known, preprocess, toolchain)) return kWhole;
  Written written;
  for (const exec::InputFile& input : preprocess.inputs) {
    if (IsSourceCopy(input.path)) written.texts.push_back({*input.content});
  }
  if (!AddHeaders(preprocess, written)) return kWhole;
  if (IncludesUnseenHeader(env, known, preprocess, written, toolchain)) return kWhole;
  return language::ChooseRuntime(known.names, {.written = std::move(written.texts)});
}

Digest HeadOf(const Phases& phases) {
  CanonicalHasher hasher("kernix-head");
  for (const std::string& name : IncludedNames(phases)) hasher.Field("header", name);
  return hasher.Finish();
}

RuntimeChoice ChooseRuntime(Env& env, const KnownRuntime& known, const Phases& phases, const PlanOutputs& outputs,
                            const toolchain::Toolchain& toolchain) {
  const exec::Action& preprocess = phases.preprocess.front().action;
  if (NeedsWhole(env, known, preprocess, toolchain)) return kWhole;
  FileKinds kinds(known, preprocess.links, toolchain);
  language::UnitTexts texts;
  std::set<std::string> files;
  for (const size_t pass : known.passes) {
    const std::vector<std::string>& made = phases.preprocess[pass].action.outputs;
    for (std::string& file : ParseDependencyFile(*outputs.at(made[1]))) files.insert(std::move(file));
    texts.preprocessed.push_back(*outputs.at(made[0]));
  }
  const bool has_slim = std::includes(files.begin(), files.end(), known.slim_files.begin(), known.slim_files.end());
  if (!has_slim) return kWhole;  // a file of the user takes the place of a header of the toolkit
  std::deque<std::string> storage;
  for (const std::string& file : files) {
    const std::optional<Kind> kind = kinds.KindOf(file);
    if (!kind || *kind == Kind::kLibrary) continue;
    absl::StatusOr<std::string> text = ReadFileOf(env, preprocess, toolchain, file);
    if (!text.ok()) return kWhole;
    storage.push_back(*std::move(text));
    if (*kind == Kind::kUser && BorrowsAName(storage.back(), kinds)) return kWhole;
    texts.written.push_back({storage.back(), *kind});
  }
  texts.kind_of = [&](std::string_view file) { return kinds.KindOf(file); };
  return language::ChooseRuntime(known.names, texts);
}

}  // namespace kernix::build
