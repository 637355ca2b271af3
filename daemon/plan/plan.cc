// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/plan.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/input_root.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/kernel_headers.h"
#include "daemon/language/write/prologue.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/plan_parts.h"
#include "daemon/plan/toolchain_paths.h"

namespace kernix::build {
namespace {

constexpr char kKernelHeaders[] = "kernix";
constexpr char kLastKernelHeaders[] = "kernix/compat";
constexpr size_t kMaxFileName = 255;
constexpr uint64_t kLinkMemory = 256ull << 20;

exec::Content MakeContent(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

// Where an include root lies: so deep that what its headers climb to is inside "inc/<index>".
std::string IncludeRoot(const BuildRequest& request, uint32_t index) {
  std::string folder = StrCat(kIncludeRootsFolder, "/", index);
  for (int i = request.root_climbs[index]; i > 0; --i) StrAppend(&folder, "/", kClimbFolder);
  return folder;
}

std::string TopOfRoot(uint32_t index) { return StrCat(kIncludeRootsFolder, "/", index); }

// A root above which headers lie has to be there itself, or a path that leads through it leads nowhere. A header in it
// sees to that, or this.
std::optional<TreeFile> RootMarker(const BuildRequest& request, uint32_t root, bool has_header_inside) {
  if (request.root_climbs[root] == 0 || has_header_inside) return std::nullopt;
  std::string path = StrCat(IncludeRoot(request, root), "/.keep").substr(TopOfRoot(root).size() + 1);
  return TreeFile{{std::move(path), MakeContent("")}, DigestOf("")};
}

std::vector<exec::InputFile> StagedKernelHeaders() {
  std::vector<exec::InputFile> files;
  for (const language::GeneratedFile& header : language::KernelHeaders()) {
    files.push_back({StrCat(kKernelHeaders, "/", header.path), MakeContent(header.text)});
  }
  return files;
}

absl::StatusOr<exec::InputFile> Stage(std::string path, const Digest& digest, const HeaderContents& contents) {
  const auto content = contents.find(digest);
  if (content == contents.end()) return MakeError(v1::ErrorDetail::INTERNAL, StrCat("no content for \"", path, "\""));
  return exec::InputFile{std::move(path), content->second};
}

// The headers of each root, by their places below "inc/<root>".
absl::StatusOr<std::vector<std::vector<TreeFile>>> HeadersByRoot(const BuildRequest& request,
                                                                 const HeaderContents& contents) {
  std::vector<std::vector<TreeFile>> roots(request.include_root_count);
  std::vector<bool> has_header_inside(request.include_root_count);
  for (const HeaderRef& header : request.headers) {
    const size_t top = TopOfRoot(header.include_root).size() + 1;
    std::string path = NormalizePath(HeaderName(request, header)).substr(top);
    KERNIX_ASSIGN_OR_RETURN(exec::InputFile file, Stage(std::move(path), header.digest, contents));
    roots[header.include_root].push_back({std::move(file), header.digest});
    if (!header.path.starts_with("../")) has_header_inside[header.include_root] = true;
  }
  for (uint32_t root = 0; root < roots.size(); ++root) {
    if (auto marker = RootMarker(request, root, has_header_inside[root])) roots[root].push_back(*std::move(marker));
  }
  return roots;
}

absl::StatusOr<MountedTrees> StageHeaders(const BuildRequest& request, const HeaderContents& contents,
                                          HeaderTrees& trees) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::vector<TreeFile>> headers, HeadersByRoot(request, contents));
  const std::vector<exec::InputTreePtr> roots = trees.Get(headers);
  auto mounted = std::make_shared<std::vector<exec::MountedTree>>();
  for (uint32_t root = 0; root < roots.size(); ++root) {
    if (roots[root] != nullptr) mounted->push_back({TopOfRoot(root), roots[root]});
  }
  return mounted;
}

// XLA's headers bring what they need themselves.
bool MayLeanOnPrologue(const HeaderRef& header) { return !absl::StartsWith(header.path, "xla/"); }

language::PrologueScan ScanHeaders(const BuildRequest& request, const HeaderContents& contents) {
  language::PrologueScan scan;
  absl::flat_hash_set<Digest> added;  // one content may have any number of names
  for (const HeaderRef& header : request.headers) {
    if (MayLeanOnPrologue(header) && added.insert(header.digest).second) scan.Add(*contents.at(header.digest));
  }
  return scan;
}

exec::InputFile StagePrologue(const Unit& unit, language::PrologueScan scan) {
  for (const language::SourceText& source : unit.sources) scan.Add(source.text);
  return {StrCat(kKernelHeaders, "/", language::kPrologueHeader), MakeContent(scan.Text())};
}

// Whether a source can lie under its label in the input root.
bool CanBeStaged(const std::string& label) {
  // nvcc looks for the last one in the input root before everywhere else.
  static const auto& ours = *new absl::flat_hash_set<std::string>{
      ".",         "..",         "specs",     kKernelHeaders,          kIncludeRootsFolder,
      kUnitFolder, kMacroFolder, kLinkFolder, language::kRuntimeHeader};
  return label.size() <= kMaxFileName && label.find('/') == std::string::npos && !ours.contains(label);
}

// The sources under their labels: nothing includes them, but it is there that a compiler looks for the line that it
// shows with an error. Of two with one label it would show the wrong one's; and where a header "../<label>" is meant,
// it would find the source.
std::vector<exec::InputFile> StageSources(const BuildRequest& request, const Unit& unit) {
  absl::flat_hash_map<std::string, int> uses;
  for (const language::SourceText& source : unit.sources) ++uses[source.label];
  for (const HeaderRef& header : request.headers) {
    if (header.path.starts_with("../")) ++uses[Basename(header.path)];
  }
  std::vector<exec::InputFile> files;
  for (const language::SourceText& source : unit.sources) {
    if (CanBeStaged(source.label) && uses[source.label] == 1) files.push_back({source.label, MakeContent(source.text)});
  }
  return files;
}

absl::StatusOr<std::vector<exec::InputFile>> StageFlagFiles(const BuildRequest& request,
                                                            const HeaderContents& contents) {
  std::vector<exec::InputFile> files;
  for (const toolchain::FlagFile& flag_file : request.flag_files) {
    if (flag_file.staged.empty()) continue;
    KERNIX_ASSIGN_OR_RETURN(exec::InputFile file, Stage(flag_file.staged, flag_file.digest, contents));
    files.push_back(std::move(file));
  }
  return files;
}

bool ChoosesStandard(const std::string& flag) {
  return absl::StartsWith(flag, "-std") || absl::StartsWith(flag, "--std") || flag == "-ansi";
}

// The label as part of a file's name, which linkers show.
std::string FileName(std::string label) {
  constexpr size_t kLongest = 100;
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
  for (char& c : label) c = is_plain(static_cast<unsigned char>(c)) ? c : '_';
  return label.substr(0, kLongest);
}

PlannedUnit PlaceUnit(const BuildRequest& request, size_t index) {
  const Unit& unit = request.units[index];
  PlannedUnit planned;
  planned.language = unit.language;
  planned.folder = kUnitFolder;
  if (request.units.size() > 1) {
    planned.label = unit.sources[0].label;
    StrAppend(&planned.folder, "/", index, "-", FileName(planned.label));
  }
  planned.path = StrCat(planned.folder, unit.language == v1::LANGUAGE_CUDA ? "/unit.cu" : "/unit.cc");
  planned.object = planned.folder + "/unit.o";
  planned.dependencies = planned.folder + "/unit.d";
  planned.roots = unit.roots;
  planned.assembler_dependencies = planned.folder + "/assembler.d";
  return planned;
}

bool HasMacroHeader(const BuildRequest& request, v1::Language language) {
  return language == v1::LANGUAGE_CUDA && !request.definitions.empty();
}

exec::InputFile StageMacros(const BuildRequest& request) {
  return {StrCat(kMacroFolder, "/", language::kRuntimeHeader),
          MakeContent(language::RuntimeHeaderWith(request.definitions))};
}

std::vector<PlannedUnit> PlaceUnits(const BuildRequest& request, const HeaderContents& contents,
                                    const MountedTrees& trees) {
  static const auto& kernel_headers = *new std::vector<exec::InputFile>(StagedKernelHeaders());
  const language::PrologueScan headers = ScanHeaders(request, contents);
  std::vector<PlannedUnit> units;
  for (size_t i = 0; i < request.units.size(); ++i) {
    const Unit& unit = request.units[i];
    PlannedUnit planned = PlaceUnit(request, i);
    planned.trees = trees;
    planned.files = kernel_headers;
    planned.files.push_back({planned.path, MakeContent(TranslationUnit(request, unit))});
    if (!request.headers.empty()) planned.files.push_back(StagePrologue(unit, headers));
    if (HasMacroHeader(request, unit.language)) planned.files.push_back(StageMacros(request));
    Append(planned.files, StageSources(request, unit));
    units.push_back(std::move(planned));
  }
  return units;
}

PlanFiles FilesOf(const PlanInputs& inputs) {
  PlanFiles files{kArtifact, {}, {}, inputs.places.links};
  for (const PlannedUnit& unit : inputs.units) {
    files.dependencies.push_back(unit.dependencies);
    if (AssemblerTells(inputs.request)) files.assembler_dependencies.push_back(unit.assembler_dependencies);
  }
  if (inputs.request.keep) Append(files.dependencies, KeptDependencies(inputs));
  return files;
}

// At the link these add a constructor that makes the whole process flush denormal numbers to zero.
bool SetsProcessRounding(std::string_view flag) {
  return flag == "-ffast-math" || flag == "-Ofast" || flag == "-funsafe-math-optimizations";
}

}  // namespace

std::string HeaderName(const BuildRequest& request, const HeaderRef& header) {
  return JoinPath(IncludeRoot(request, header.include_root), header.path);
}

std::vector<std::string> QuoteIncludeFlags(const BuildRequest& request, const PlannedUnit& unit) {
  std::vector<std::string> flags;
  if (HasMacroHeader(request, unit.language)) flags.push_back(StrCat("-iquote", kMacroFolder));
  // Ours are first for both forms.
  flags.push_back(StrCat("-iquote", kKernelHeaders));
  for (const SearchedRoot& searched : unit.roots) {
    if (searched.only_quoted) flags.push_back(StrCat("-iquote", IncludeRoot(request, searched.root)));
  }
  return flags;
}

std::vector<std::string> IncludeFlags(const BuildRequest& request, const PlannedUnit& unit) {
  std::vector<std::string> flags = {StrCat("-I", kKernelHeaders)};
  for (const SearchedRoot& searched : unit.roots) {
    if (!searched.only_quoted) flags.push_back(StrCat("-I", IncludeRoot(request, searched.root)));
  }
  flags.push_back(StrCat("-I", kLastKernelHeaders));
  return flags;
}

std::string PrefixMap(std::string_view folder, std::string_view name) {
  return StrCat("-ffile-prefix-map=", folder, "=", name);
}

std::vector<std::string> PrefixMaps(const toolchain::Toolchain& toolchain) {
  std::vector<std::string> flags;
  for (const NamedFolder& folder : ToolchainFolders(toolchain)) {
    flags.push_back(PrefixMap(folder.path, folder.name));
  }
  return flags;
}

bool UsesLto(const std::vector<std::string>& flags) {
  return std::any_of(flags.begin(), flags.end(), [](const auto& flag) { return absl::StartsWith(flag, "-flto"); });
}

std::vector<std::string> DefaultStandard(const std::vector<std::string>& flags) {
  if (std::any_of(flags.begin(), flags.end(), ChoosesStandard)) return {};
  return {"-std=c++17"};
}

bool AssemblerTells(const BuildRequest& request) {
  return request.toolchain->host.kind == toolchain::HostCompilerKind::kGcc || request.assembler_must_tell;
}

std::vector<std::string> AssemblerFlags(const BuildRequest& request, const PlannedUnit& unit) {
  if (!AssemblerTells(request)) return {};
  std::vector<std::string> flags = {"-Xassembler", "--MD", "-Xassembler", unit.assembler_dependencies};
  if (request.toolchain->host.kind == toolchain::HostCompilerKind::kClang) {
    flags.emplace_back("-fno-integrated-as");
    return flags;
  }
  // Through a pipe, so that the file between compiler and assembler is none that was read.
  flags.emplace_back("-pipe");
  if (UsesLto(request.compile_flags)) flags.push_back("-ffat-lto-objects");
  return flags;
}

std::string StepName(std::string_view what, const PlannedUnit& unit) {
  return unit.label.empty() ? std::string(what) : StrCat(what, " ", unit.label);
}

std::vector<std::string> PrivateSymbolFlags(const toolchain::Toolchain& toolchain) {
  if (toolchain.host.kind != toolchain::HostCompilerKind::kGcc) return {};
  return {"-fno-gnu-unique"};
}

Step LinkStep(const PlanInputs& inputs, const std::vector<std::string>& compile_flags,
              const std::vector<std::string>& libraries) {
  const BuildRequest& request = inputs.request;
  Step step;
  step.action.step = "link";
  // A missing symbol is told at once, with its name, not when the artifact is opened; `-Wl,-z,undefs` among the user's
  // flags undoes that. What the sources and their static libraries define is what they use, whatever a library that is
  // open for the whole process (RTLD_GLOBAL) calls the same. The build id is a digest of the content.
  step.action.argv = {request.toolchain->host.path, "-shared",        "-fPIC",
                      "-Wl,--no-undefined",         "-Wl,-Bsymbolic", "-Wl,--build-id=sha1"};
  for (const std::string& flag : compile_flags) {
    if (!SetsProcessRounding(flag)) step.action.argv.push_back(flag);
  }
  // An object that says it is one of link-time optimisation, as a source can have it by assembler text, is compiled in
  // the link, where nobody sees what is read.
  if (!UsesLto(compile_flags) && !UsesLto(request.link_flags)) step.action.argv.emplace_back("-fno-lto");
  Append(step.action.argv, {"-o", kArtifact});
  for (const PlannedUnit& unit : inputs.units) {
    step.action.argv.push_back(unit.object);
    step.inputs_from_steps.push_back(unit.object);
  }
  Append(step.action.argv, request.link_flags);
  Append(step.action.argv, libraries);
  step.action.environment = request.toolchain->environment;
  step.action.inputs = inputs.link_files;
  step.action.outputs = {kArtifact};
  step.action.timeout = inputs.limits.step_timeout;
  step.action.memory_estimate_bytes = kLinkMemory;
  return step;
}

absl::StatusOr<Plan> MakePlan(const BuildRequest& request, const HeaderContents& contents, HeaderTrees& trees,
                              const PlanLimits& limits) {
  PlanInputs inputs{request, limits};
  if (request.language == v1::LANGUAGE_CUDA) {
    KERNIX_ASSIGN_OR_RETURN(inputs.places, FindNvccPlaces(*request.toolchain));
  }
  KERNIX_ASSIGN_OR_RETURN(inputs.link_files, StageFlagFiles(request, contents));
  KERNIX_ASSIGN_OR_RETURN(const MountedTrees mounted, StageHeaders(request, contents, trees));
  inputs.units = PlaceUnits(request, contents, mounted);
  return Plan{request.language == v1::LANGUAGE_CUDA ? CudaSteps(inputs) : CppSteps(inputs), FilesOf(inputs), mounted};
}

}  // namespace kernix::build
