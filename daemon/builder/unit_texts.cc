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
#include "daemon/plan/tool_places.h"

namespace kernix::build {
namespace {

using language::Lexer;
using language::RuntimeChoice;
using language::Token;
using language::UnitText;
using Kind = UnitText::Kind;

RuntimeChoice Whole(std::string why) { return {.full = true, .why = std::move(why), .parts = {}}; }

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

// A macro of flags that may change the runtime header itself; empty if there is none.
std::string MacroBeforeHeaders(const KnownRuntime& known, const exec::Action& preprocess) {
  for (const exec::InputFile& input : preprocess.inputs) {
    if (!IsBelow(input.path, kMacroFolder)) continue;
    std::deque<std::string> storage;
    Lexer lexer(*input.content, storage);
    bool names_follow = false;
    for (Token token; lexer.NextInDirective(token);) {
      if (names_follow && known.names.MayChangeHeaders(token.text)) return std::string(token.text);
      names_follow = token.Is("define") || token.Is("undef");
    }
  }
  return "";
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

// A file of the action's root, or of the toolchain, as a tool has named it.
absl::StatusOr<std::string> ReadFileOf(Env& env, const exec::Action& action, const std::string& name) {
  for (const exec::InputFile& input : action.inputs) {
    if (input.path == name) return std::string(*input.content);
  }
  const std::string in_tree = PlaceInTree(action, name);
  const std::string path = in_tree.empty() ? BehindLinks(name, action.links) : in_tree;
  if (!path.starts_with('/')) return absl::NotFoundError(StrCat(name, " is in no known place"));
  return env.ReadFile(path);
}

// The names by which the whole header's files can be included.
std::set<std::string> IncludableNames(const KnownRuntime& known, const std::vector<exec::InputLink>& links,
                                      const toolchain::Toolchain& toolchain) {
  std::vector<std::string> folders = toolchain.host.system_include_directories;
  folders.push_back(toolchain.cuda->root + "/include");
  folders.insert(folders.end(), toolchain.cuda->include_directories.begin(), toolchain.cuda->include_directories.end());
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

// A header of the request that is found in the place of one that the whole header reads; empty if there is none. The
// stand-in may leave out the one that would read it.
std::string HeaderInPlaceOfToolkits(Env& env, const KnownRuntime& known, const exec::Action& preprocess,
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
  if (folders.empty()) return "";
  for (const std::string& name : IncludableNames(known, preprocess.links, toolchain)) {
    for (const std::string& folder : folders) {
      if (env.Stat(JoinPath(folder, name)).ok()) return name;
    }
  }
  return "";
}

// A file that the text says it comes from (`#line 7 "name"`), though it is none of the user's; empty if there is none.
// What kind of text follows could not be told.
std::string BorrowedName(std::string_view text, FileKinds& kinds) {
  std::deque<std::string> storage;
  Lexer lexer(text, storage);
  bool is_line = false;
  for (Token token; lexer.NextInDirective(token);) {
    if (token.starts_directive) is_line = false;
    if (token.Is("line") || token.kind == language::TokenKind::kNumber) is_line = true;
    if (!is_line || token.text.size() < 3 || token.text.front() != '"' || token.text[1] == '<') continue;
    const std::string_view name = token.text.substr(1, token.text.size() - 2);
    if (kinds.KindOf(name) != Kind::kUser) return std::string(name);
  }
  return "";
}

std::vector<std::string> IncludedNames(const Phases& phases) {
  std::vector<std::string> names;
  for (const exec::InputFile& input : phases.preprocess.front().action.inputs) {
    if (!IsSourceCopy(input.path)) continue;
    for (const ScannedInclude& include : ScanIncludes(*input.content).includes) names.push_back(include.target.name);
  }
  return names;
}

bool IsOfHostCompiler(Env& env, const std::string& header, const toolchain::Toolchain& toolchain) {
  const std::vector<std::string>& folders = toolchain.host.system_include_directories;
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return env.Stat(JoinPath(folder, header)).ok(); });
}

// Why the whole header is needed whatever the preprocessor reads; empty if there is no such reason.
std::string WhyWhole(Env& env, const KnownRuntime& known, const exec::Action& preprocess,
                     const toolchain::Toolchain& toolchain) {
  if (const std::string macro = MacroBeforeHeaders(known, preprocess); !macro.empty()) {
    return StrCat("the macro ", macro, " of a flag");
  }
  const std::string header = HeaderInPlaceOfToolkits(env, known, preprocess, toolchain);
  if (header.empty()) return "";
  return StrCat("the request's header ", header, " is found in the place of one that cuda_runtime.h reads");
}

// Whether the unit includes more than headers of the host compiler, what the runtime header reads itself, and kernix's
// own headers, of which only the half types take what no source names.
bool ReadsMore(Env& env, const KnownRuntime& known, const Phases& phases, const toolchain::Toolchain& toolchain) {
  const exec::Action& preprocess = phases.preprocess.front().action;
  const std::set<std::string> of_runtime = IncludableNames(known, preprocess.links, toolchain);
  const auto is_harmless = [&](const std::string& name) {
    return name.starts_with("brainevent/") || of_runtime.contains(name) || IsOfHostCompiler(env, name, toolchain);
  };
  const std::vector<exec::InputFile>& inputs = preprocess.inputs;
  const std::vector<std::string> names = IncludedNames(phases);
  return !std::all_of(names.begin(), names.end(), is_harmless) ||
         std::any_of(inputs.begin(), inputs.end(), [&](const exec::InputFile& input) {
           return input.path == phases.unit && language::HasText(*input.content, "#define KERNIX_USES_HALF");
         });
}

}  // namespace

RuntimeChoice GuessRuntime(Env& env, const KnownRuntime& known, const Phases& phases,
                           const toolchain::Toolchain& toolchain) {
  const exec::Action& preprocess = phases.preprocess.front().action;
  if (std::string why = WhyWhole(env, known, preprocess, toolchain); !why.empty()) return Whole(std::move(why));
  language::UnitTexts texts;
  for (const exec::InputFile& input : preprocess.inputs) {
    if (IsSourceCopy(input.path)) texts.written.push_back({input.path, *input.content});
  }
  RuntimeChoice choice = language::ChooseRuntime(known.names, texts);
  if (ReadsMore(env, known, phases, toolchain)) choice.parts = language::AllRuntimeParts();
  return choice;
}

Digest HeadOf(const Phases& phases, bool with_sources) {
  CanonicalHasher hasher("kernix-head");
  for (const std::string& name : IncludedNames(phases)) hasher.Field("header", name);
  for (const exec::InputFile& input : phases.preprocess.front().action.inputs) {
    if (with_sources && IsSourceCopy(input.path)) hasher.Field("source", input.path);
  }
  return hasher.Finish();
}

RuntimeChoice ChooseRuntime(Env& env, const KnownRuntime& known, const Phases& phases, const PlanOutputs& outputs,
                            const toolchain::Toolchain& toolchain) {
  const exec::Action& preprocess = phases.preprocess.front().action;
  if (std::string why = WhyWhole(env, known, preprocess, toolchain); !why.empty()) return Whole(std::move(why));
  FileKinds kinds(known, preprocess.links, toolchain);
  language::UnitTexts texts;
  std::set<std::string> files;
  for (const size_t pass : known.passes) {
    const std::vector<std::string>& made = phases.preprocess[pass].action.outputs;
    for (std::string& file : ParseDependencyFile(*outputs.at(made[1]))) files.insert(std::move(file));
    texts.preprocessed.push_back(*outputs.at(made[0]));
  }
  if (!std::includes(files.begin(), files.end(), known.slim_files.begin(), known.slim_files.end())) {
    return Whole("a file of the user takes the place of a header of the toolkit");
  }
  std::deque<std::string> storage;
  for (const std::string& file : files) {
    const std::optional<Kind> kind = kinds.KindOf(file);
    if (!kind || *kind == Kind::kLibrary) continue;
    absl::StatusOr<std::string> text = ReadFileOf(env, preprocess, file);
    if (!text.ok()) return Whole(text.status().ToString());
    storage.push_back(*std::move(text));
    if (*kind == Kind::kUser) {
      const std::string borrowed = BorrowedName(storage.back(), kinds);
      if (!borrowed.empty()) return Whole(StrCat(file, " says that text of it is ", borrowed));
    }
    texts.written.push_back({file, storage.back(), *kind});
  }
  texts.kind_of = [&](std::string_view file) { return kinds.KindOf(file); };
  return language::ChooseRuntime(known.names, texts);
}

}  // namespace kernix::build
