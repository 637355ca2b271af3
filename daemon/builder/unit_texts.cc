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
#include "common/cxx/lexer.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/slim_phases.h"
#include "daemon/plan/tool_places.h"
#include "daemon/plan/toolchain_paths.h"

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
    if (name.starts_with("<handler of ")) return Kind::kKernix;
    if (name.starts_with('<') || known_.slim_files.contains(name)) return std::nullopt;
    if (IsBelow(name, kKernelHeaders)) return Kind::kKernix;
    const std::string path = NormalizePath(BehindLinks(name, links_));
    if (IsBelow(path, NormalizePath(toolchain_.cuda->root))) return Kind::kToolkit;
    if (IsBelowAny(path, toolchain_.cuda->include_directories)) return Kind::kToolkit;
    if (IsBelowAny(path, toolchain_.host.system_include_directories)) return Kind::kLibrary;
    return Kind::kUser;
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

// A file of the action's root, or of the toolchain, as a tool has named it.
absl::StatusOr<std::string> ReadFileOf(Env& env, const exec::Action& action, const std::string& name) {
  for (const exec::InputFile& input : action.inputs) {
    if (input.path == name) return *input.content;
  }
  if (action.trees != nullptr) {
    for (const exec::MountedTree& mounted : *action.trees) {
      if (IsBelow(name, mounted.path)) return env.ReadFile(mounted.tree->Folder() + name.substr(mounted.path.size()));
    }
  }
  return env.ReadFile(BehindLinks(name, action.links));
}

// Our own folders, which hold nothing that the sources say.
bool IsOurs(const std::string& path) { return absl::StartsWith(path, "kernix-"); }

}  // namespace

RuntimeChoice GuessRuntime(const KnownRuntime& known, const Phases& phases) {
  const exec::Action& preprocess = phases.preprocess.front().action;
  language::UnitTexts texts;
  for (const exec::InputFile& input : preprocess.inputs) {
    if (!IsOurs(input.path)) texts.written.push_back({input.path, *input.content});
  }
  return language::ChooseRuntime(known.names, texts);
}

Digest IncludedNames(const Phases& phases) {
  CanonicalHasher hasher("kernix-included-names");
  for (const exec::InputFile& input : phases.preprocess.front().action.inputs) {
    if (IsOurs(input.path)) continue;
    std::deque<std::string> storage;
    Lexer lexer(*input.content, storage);
    bool name_follows = false;
    for (Token token; lexer.NextInDirective(token); name_follows = token.Is("include")) {
      if (name_follows) hasher.Field("name", token.text);
    }
  }
  return hasher.Finish();
}

RuntimeChoice ChooseRuntime(Env& env, const KnownRuntime& known, const Phases& phases, const PlanOutputs& outputs,
                            const toolchain::Toolchain& toolchain) {
  const exec::Action& preprocess = phases.preprocess.front().action;
  if (const std::string macro = MacroBeforeHeaders(known, preprocess); !macro.empty()) {
    return Whole(StrCat("the macro ", macro, " of a flag"));
  }
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
    if (!kind || *kind == Kind::kLibrary || IsBelow(file, kSlimFolder)) continue;
    absl::StatusOr<std::string> text = ReadFileOf(env, preprocess, file);
    if (!text.ok()) return Whole(text.status().ToString());
    storage.push_back(*std::move(text));
    texts.written.push_back({file, storage.back(), *kind});
  }
  texts.kind_of = [&](std::string_view file) { return IsBelow(file, kSlimFolder) ? std::nullopt : kinds.KindOf(file); };
  return language::ChooseRuntime(known.names, texts);
}

}  // namespace kernix::build
