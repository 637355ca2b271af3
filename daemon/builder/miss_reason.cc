// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/miss_reason.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/base/version.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {
namespace {

using cache::BuildInput;
using cache::BuiltFrom;
using cache::InputKind;

// Of a description.
constexpr size_t kLongestText = 500;
constexpr size_t kMostTexts = 200;

constexpr size_t kMostOfAKind = 2000;
constexpr size_t kLongestName = 200;

std::string Shortened(const std::string& text) {
  if (text.size() <= kLongestText) return ToValidUtf8(text);
  return StrCat(ToValidUtf8(text.substr(0, kLongestText)), "...");
}

// The settings of a build, and its flags, but no definitions of macros.
std::vector<std::string> DescribeFlags(const BuildRequest& request) {
  std::vector<std::string> flags = {StrCat("-O", request.optimization_level)};
  if (request.use_fast_math) flags.push_back("--use-fast-math");
  if (!request.allow_cuda_graph) flags.push_back("--no-cuda-graph");
  if (request.keep) flags.push_back("--keep");
  if (request.units.size() > 1) flags.push_back("--separate");
  for (const std::vector<std::string>* more : {&request.host_flags, &request.nvcc_flags, &request.link_flags}) {
    flags.insert(flags.end(), more->begin(), more->end());
  }
  return flags;
}

class Inputs {
 public:
  void Add(InputKind kind, std::string_view name, std::string value = "") {
    if (name.size() > kLongestName) value += DigestOf(name).Raw();
    by_kind_[kind].push_back({kind, ToValidUtf8(name.substr(0, kLongestName)), std::move(value)});
  }

  std::vector<BuildInput> Sorted() {
    std::vector<BuildInput> all;
    for (auto& [kind, inputs] : by_kind_) {
      std::sort(inputs.begin(), inputs.end());
      if (inputs.size() > kMostOfAKind) inputs = {AllInOne(kind, inputs)};
      all.insert(all.end(), inputs.begin(), inputs.end());
    }
    return all;
  }

 private:
  static BuildInput AllInOne(InputKind kind, const std::vector<BuildInput>& inputs) {
    CanonicalHasher hasher("kernix-inputs");
    for (const BuildInput& input : inputs) hasher.Field(input.name, input.value);
    return {kind, "(one of very many)", hasher.Finish().Raw()};
  }

  std::map<InputKind, std::vector<BuildInput>> by_kind_;
};

// "#define N 4" -> "N=4".
std::string DefinitionName(std::string_view line) {
  constexpr std::string_view kDefine = "#define ";
  if (!line.starts_with(kDefine)) return std::string(line);
  std::string name(line.substr(kDefine.size()));
  const size_t end = name.find_first_of(" (");
  if (end != std::string::npos && name[end] == ' ') name[end] = '=';
  return name;
}

void AddFiles(const BuildRequest& request, Inputs& inputs) {
  for (const Unit& unit : request.units) {
    for (const language::SourceText& source : unit.sources) {
      inputs.Add(InputKind::kSource, source.label, DigestOf(source.text).Raw());
    }
  }
  for (const HeaderRef& header : request.headers) inputs.Add(InputKind::kHeader, header.path, header.digest.Raw());
  // By the name under which the plan stages a file, which the key covers. The tools find the others themselves, by
  // names that flags say.
  for (const toolchain::FlagFile& file : request.flag_files) {
    inputs.Add(InputKind::kFlagFile, Basename(file.staged.empty() ? file.path : file.staged), file.digest.Raw());
  }
}

void AddSettings(const BuildRequest& request, Inputs& inputs) {
  for (const std::string& line : request.definitions) inputs.Add(InputKind::kDefinition, DefinitionName(line));
  for (const std::string& flag : DescribeFlags(request)) inputs.Add(InputKind::kFlag, flag);
  for (const std::string& architecture : request.architectures) inputs.Add(InputKind::kArchitecture, architecture);
  for (const language::FunctionSpec& function : request.functions) {
    inputs.Add(InputKind::kFunction, StrCat(function.name, "(", absl::StrJoin(function.Tokens(), ", "), ")"));
  }
  std::string places;
  for (const Unit& unit : request.units) {
    for (const SearchedRoot& root : unit.roots) StrAppend(&places, root.root, root.only_quoted ? "q" : " ");
    places += '\n';
  }
  inputs.Add(InputKind::kIncludePaths, "", DigestOf(places).Raw());
}

void AddTools(const toolchain::Toolchain& toolchain, Inputs& inputs) {
  const toolchain::HostCompiler& host = toolchain.host;
  const bool is_clang = host.kind == toolchain::HostCompilerKind::kClang;
  inputs.Add(InputKind::kTool, StrCat(is_clang ? "Clang " : "GCC ", host.version), host.identity.Raw());
  if (toolchain.cuda) {
    inputs.Add(InputKind::kTool, StrCat("nvcc ", toolchain.cuda->version), toolchain.cuda->identity.Raw());
  }
  inputs.Add(InputKind::kKernix, "", BuildId());
}

}  // namespace

std::vector<std::string> DescribeBuild(const BuildRequest& request) {
  std::vector<std::string> texts = request.definitions;
  const std::vector<std::string> flags = DescribeFlags(request);
  texts.insert(texts.end(), flags.begin(), flags.end());
  const size_t left_out = texts.size() - std::min(texts.size(), kMostTexts);
  texts.resize(texts.size() - left_out);
  for (std::string& text : texts) text = Shortened(text);
  if (left_out > 0) texts.push_back(StrCat("... and ", left_out, " more"));
  return texts;
}

std::vector<BuildInput> InputsOf(const BuildRequest& request) {
  Inputs inputs;
  AddFiles(request, inputs);
  AddSettings(request, inputs);
  AddTools(*request.toolchain, inputs);
  return inputs.Sorted();
}

namespace {

// With how many earlier loads of its name a miss is compared.
constexpr size_t kMostCompared = 16;

constexpr size_t kMostNames = 3;

// The names of the inputs of one kind that are not the same in two builds.
struct Differences {
  std::vector<std::string> changed, added, removed;

  size_t Count() const { return changed.size() + added.size() + removed.size(); }
};

using DifferencesByKind = std::map<InputKind, Differences>;
using Names = std::set<std::pair<InputKind, std::string>>;

Names NamesOf(const std::vector<BuildInput>& inputs) {
  Names names;
  for (const BuildInput& input : inputs) names.emplace(input.kind, input.name);
  return names;
}

// Both must be sorted.
std::vector<BuildInput> Without(const std::vector<BuildInput>& inputs, const std::vector<BuildInput>& others) {
  std::vector<BuildInput> rest;
  std::set_difference(inputs.begin(), inputs.end(), others.begin(), others.end(), std::back_inserter(rest));
  return rest;
}

DifferencesByKind Compare(const std::vector<BuildInput>& now, const std::vector<BuildInput>& before) {
  const Names added = NamesOf(Without(now, before));
  const Names removed = NamesOf(Without(before, now));
  DifferencesByKind found;
  for (const auto& [kind, name] : added) {
    Differences& of_kind = found[kind];
    (removed.contains({kind, name}) ? of_kind.changed : of_kind.added).push_back(name);
  }
  for (const auto& [kind, name] : removed) {
    if (!added.contains({kind, name})) found[kind].removed.push_back(name);
  }
  return found;
}

std::string List(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostNames);
  std::string list = absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", ");
  if (names.size() > shown) StrAppend(&list, " and ", names.size() - shown, " more");
  return list;
}

// For files: "headers a.h, b.h are new".
std::string AboutFiles(const char* what, const Differences& found) {
  std::vector<std::string> clauses;
  const auto add = [&](const std::vector<std::string>& names, const char* one, const char* several) {
    if (names.size() == 1) clauses.push_back(StrCat(what, " ", names[0], one));
    if (names.size() > 1) clauses.push_back(StrCat(what, "s ", List(names), several));
  };
  add(found.changed, " changed", " changed");
  add(found.added, " is new", " are new");
  add(found.removed, " is gone", " are gone");
  return absl::StrJoin(clauses, "; ");
}

// For settings: "other flags: -O2, was -O3".
std::string AboutSettings(const char* what, const Differences& found) {
  std::vector<std::string> clauses;
  if (!found.changed.empty()) clauses.push_back(StrCat(List(found.changed), " changed"));
  if (!found.added.empty() && !found.removed.empty()) {
    clauses.push_back(StrCat(List(found.added), ", was ", List(found.removed)));
  } else if (!found.added.empty()) {
    clauses.push_back(StrCat("now also ", List(found.added)));
  } else if (!found.removed.empty()) {
    clauses.push_back(StrCat("no longer ", List(found.removed)));
  }
  return StrCat("other ", what, ": ", absl::StrJoin(clauses, "; "));
}

std::string About(InputKind kind, const Differences& found) {
  switch (kind) {
    case InputKind::kSource:
      return AboutFiles("source", found);
    case InputKind::kHeader:
      return AboutFiles("header", found);
    case InputKind::kFlagFile:
      return AboutFiles("file", found);
    case InputKind::kDefinition:
      return AboutSettings("defines", found);
    case InputKind::kFlag:
      return AboutSettings("flags", found);
    case InputKind::kArchitecture:
      return AboutSettings("architectures", found);
    case InputKind::kFunction:
      return AboutSettings("functions", found);
    case InputKind::kTool:
      return AboutSettings("toolchain", found);
    case InputKind::kIncludePaths:
      return "other include paths";
    case InputKind::kKernix:
      return "other kernix: another build of kernixd made the earlier kernel";
  }
  return "";
}

// Every CUDA build has an architecture, and no other build has one.
bool IsCuda(const std::vector<BuildInput>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const BuildInput& input) { return input.kind == InputKind::kArchitecture; });
}

size_t Distance(const DifferencesByKind& found) {
  size_t distance = 0;
  for (const auto& [kind, differences] : found) distance += differences.Count();
  return distance;
}

std::string Tell(DifferencesByKind found) {
  // Another kernixd makes another key for some loads only. The user's own change explains the miss by itself.
  if (found.size() > 1) found.erase(InputKind::kKernix);
  if (found.empty()) return "other order: of flags, sources, functions or include paths";
  std::vector<std::string> clauses;
  for (const auto& [kind, differences] : found) clauses.push_back(About(kind, differences));
  return Printable(absl::StrJoin(clauses, "; "));
}

}  // namespace

Miss CompareWithEarlier(const std::vector<BuildInput>& inputs, const std::vector<BuiltFrom>& earlier) {
  std::optional<DifferencesByKind> least;
  std::optional<Digest> nearest;
  for (const BuiltFrom& built : earlier) {
    if (IsCuda(built.inputs) != IsCuda(inputs)) continue;
    DifferencesByKind found = Compare(inputs, built.inputs);
    if (least && Distance(found) >= Distance(*least)) continue;
    least = std::move(found);
    nearest = built.key;
  }
  if (least) return {Tell(*std::move(least)), nearest};
  return {"new source"};
}

Miss ExplainMiss(cache::Cache& cache, toolchain::FileDigests& digests, const PlannedLoad& load) {
  if (load.force) return {"force_rebuild"};
  const absl::StatusOr<std::vector<cache::BuiltFrom>> earlier = cache.Recent(load.tag, kMostCompared);
  if (!earlier.ok()) return {"not known: the cache cannot be read"};
  const bool has_key = std::any_of(earlier->begin(), earlier->end(),
                                   [&](const cache::BuiltFrom& built) { return built.key == load.key; });
  if (!has_key) return CompareWithEarlier(InputsOf(load.request), *earlier);
  const absl::StatusOr<std::optional<cache::Entry>> entry = cache.Find(load.key);
  if (!entry.ok() || !entry->has_value()) return {"not known: the earlier kernel has just left the cache"};
  std::vector<WatchedFile> unchanged;
  const std::optional<std::string> header =
      ChangedToolchainHeader(digests, *load.request.toolchain, (*entry)->toolchain_headers, unchanged);
  if (!header) return {"another load has just built it"};
  const bool is_of_toolchain = PortablePath(ToolchainFolders(*load.request.toolchain), *header) != *header;
  return {Printable(StrCat(is_of_toolchain ? "toolchain header " : "file ", *header, " changed")), load.key};
}

}  // namespace kernix::build
