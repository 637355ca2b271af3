// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/plan.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/flag_table.h"
#include "common/wire/input_root.h"
#include "daemon/exec/action_digest.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/prologue.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/plan_parts.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {
namespace {

using flags::Meaning;

constexpr char kLastKernelHeaders[] = "kernix/compat";
constexpr size_t kMaxFileName = 255;

// The kernel headers, which every build has in the same version.
const RootTree& KernelHeaderTree() {
  static const auto& tree = *new RootTree([] {
    RootTree made;
    for (const language::GeneratedFile& header : language::KernelHeaders()) {
      made.files.push_back(exec::MakeInput(header.path, header.text));
    }
    made.digest = exec::MerkleTree(made.files).Digest();
    return made;
  }());
  return tree;
}

// All of them: which ones the prologue depends on is for language/write/prologue.h to say, whose code the id covers.
language::PrologueScan ScanHeaders(const BuildRequest& request, const HeaderContents& contents) {
  std::vector<language::PrologueHeader> headers;
  for (const HeaderRef& header : request.headers) headers.push_back({header.path, *contents.at(header.digest)});
  return language::PrologueScan(headers, &language::NamesInHeaders());
}

// The prologue's inputs, besides the headers.
std::vector<std::string_view> TextsOf(const BuildRequest& request, const Unit& unit) {
  std::vector<std::string_view> texts(request.definitions.begin(), request.definitions.end());
  for (const language::SourceText& source : unit.sources) texts.push_back(source.text);
  return texts;
}

// Represents the prologue header's content, which depends on the texts of the headers: the id stays the same as long as
// these texts and the code that reads them do.
Digest PrologueId(const BuildRequest& request, const Unit& unit, const Digest& header_list) {
  CanonicalHasher hasher("kernix-prologue");
  hasher.Field("reader", language::PrologueSourcesDigest()).Field("headers", header_list);
  hasher.Field("ours", KernelHeaderTree().digest.hash);
  for (const std::string_view text : TextsOf(request, unit)) hasher.Field("source", text);
  return hasher.Finish();
}

exec::InputFile ProloguePlace(const BuildRequest& request, const PlannedUnit& planned, const Unit& unit,
                              const Digest& header_list) {
  return {StrCat(planned.folder, "/", language::kPrologueHeader), {PrologueId(request, unit, header_list), 0}};
}

// Stages the sources under their labels. No file includes them, but compilers read from there the line that they show
// with an error. If two sources share a label, the compiler would show the wrong one: then neither is staged.
std::vector<exec::InputFile> StageSources(const Unit& unit) {
  absl::flat_hash_map<std::string, int> uses;
  for (const language::SourceText& source : unit.sources) ++uses[source.label];
  std::vector<exec::InputFile> files;
  for (const language::SourceText& source : unit.sources) {
    const bool is_file_name = source.label.size() <= kMaxFileName;
    if (is_file_name && uses[source.label] == 1) {
      files.push_back(exec::MakeInput(language::ToolName(source.label), source.text));
    }
  }
  return files;
}

std::vector<exec::InputFile> FlagFiles(const BuildRequest& request) {
  std::vector<exec::InputFile> files;
  for (const toolchain::FlagFile& file : request.flag_files) {
    if (!file.staged.empty()) files.push_back({file.staged, {file.digest, 0}});
  }
  return files;
}

// The inputs of a step beyond its words and files: the tools, and files that flags name in place.
Digest SaltOf(const BuildRequest& request, const WorkerTools& workers) {
  CanonicalHasher hasher("kernix-tools");
  hasher.Field("toolchain", request.toolchain->identity);
  for (const toolchain::FlagFile& file : request.flag_files) {
    if (file.staged.empty()) hasher.Field("file", file.digest);
  }
  if (workers.MayUseOthers(request)) hasher.Field("workers", workers.name);
  return hasher.Finish();
}

// The label as part of a file name, which linkers show.
std::string FileName(std::string label) {
  constexpr size_t kLongest = 100;
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
  for (char& c : label) c = is_plain(static_cast<unsigned char>(c)) ? c : '_';
  return label.substr(0, kLongest);
}

PlannedUnit PlaceUnit(const BuildRequest& request, size_t index) {
  const Unit& unit = request.units[index];
  PlannedUnit planned;
  planned.language = &TraitsOf(unit.language);
  planned.folder = kUnitFolder;
  if (request.units.size() > 1) {
    planned.label = unit.sources[0].label;
    StrAppend(&planned.folder, "/", index, "-", FileName(planned.label));
  }
  planned.path = StrCat(planned.folder, "/", planned.language->unit);
  planned.object = planned.folder + "/unit.o";
  planned.dependencies = planned.folder + "/unit.d";
  planned.roots = unit.roots;
  planned.assembler_dependencies = planned.folder + "/assembler.d";
  return planned;
}

bool HasMacroHeader(const BuildRequest& request, const LanguageTraits& language) {
  return !language.first_header.empty() && !request.definitions.empty();
}

exec::InputFile StageMacros(const BuildRequest& request, std::string_view header) {
  return exec::MakeInput(StrCat(kMacroFolder, "/", header), language::HeaderWith(request.definitions, header));
}

std::vector<PlannedUnit> PlaceUnits(const BuildRequest& request, Plan& plan) {
  std::vector<PlannedUnit> units;
  const exec::InputFile macros =  // all units share its content
      StageMacros(request, TraitsOf(request.language).first_header);
  for (size_t i = 0; i < request.units.size(); ++i) {
    const Unit& unit = request.units[i];
    PlannedUnit planned = PlaceUnit(request, i);
    planned.trees = plan.trees;
    language::TranslationUnit text = UnitText(request, unit);
    plan.unit_texts.push_back(exec::MakeContent(text.Text()));
    planned.files.push_back(exec::MakeInput(planned.path, std::move(text.sources)));
    if (!text.handlers.empty()) {
      planned.files.push_back(
          exec::MakeInput(StrCat(planned.folder, "/", language::kHandlersHeader), std::move(text.handlers)));
    }
    if (!request.headers.empty()) planned.files.push_back(ProloguePlace(request, planned, unit, plan.roots->list));
    if (HasMacroHeader(request, *planned.language)) planned.files.push_back(macros);
    Append(planned.files, StageSources(unit));
    units.push_back(std::move(planned));
  }
  return units;
}

PlanFiles FilesOf(const PlanInputs& inputs, ModuleParts more) {
  PlanFiles files{.artifact = kArtifact, .links = inputs.tools.links};
  for (const PlannedUnit& unit : inputs.units) {
    files.dependencies.push_back(unit.dependencies);
    if (AssemblerTells(inputs.request)) files.dependencies.push_back(unit.assembler_dependencies);
  }
  if (CompilesHandlers(inputs.request)) files.dependencies.emplace_back(kHandlerDependencies);
  Append(files.dependencies, more.dependencies);
  files.kept = std::move(more.kept);
  return files;
}

// The mount points of the kernel headers and of each non-empty include root.
std::shared_ptr<std::vector<exec::MountedTree>> MountPoints(const IncludeRoots& roots) {
  auto trees = std::make_shared<std::vector<exec::MountedTree>>();
  trees->push_back({kKernelHeaders, KernelHeaderTree().digest, nullptr});
  for (uint32_t root = 0; root < roots.roots.size(); ++root) {
    if (roots.roots[root].files.empty()) continue;
    trees->push_back({TopOfIncludeRoot(root), roots.roots[root].digest, nullptr});
  }
  return trees;
}

void AddPrologues(const BuildRequest& request, const Digest& header_list, HeaderContents& contents) {
  if (request.headers.empty()) return;
  const language::PrologueScan headers = ScanHeaders(request, contents);
  for (const Unit& unit : request.units) {
    contents[PrologueId(request, unit, header_list)] =
        exec::MakeContent(language::Prologue(TextsOf(request, unit), headers));
  }
}

absl::StatusOr<exec::InputFile> Stage(exec::InputFile input, const HeaderContents& contents) {
  const auto content = contents.find(input.digest.hash);
  if (content == contents.end()) {
    return MakeError(v1::ErrorDetail::INTERNAL, StrCat("no content for \"", input.path, "\""));
  }
  return exec::MakeInput(std::move(input.path), content->second);
}

absl::Status CheckSizes(const BuildRequest& request, const HeaderContents& contents) {
  for (const HeaderRef& header : request.headers) {
    const uint64_t size = contents.at(header.digest)->size();
    if (size == header.size) continue;
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("header \"", header.path, "\" has ", size, " bytes, but the request says ", header.size));
  }
  return absl::OkStatus();
}

std::string PrefixMap(std::string_view folder, std::string_view name) {
  return StrCat("-ffile-prefix-map=", folder, "=", name);
}

// Whether the folder of an include root is there: an empty one is not.
bool HasHeaders(const BuildRequest& request, uint32_t root) {
  const auto first = std::partition_point(request.headers.begin(), request.headers.end(),
                                          [root](const HeaderRef& header) { return header.include_root < root; });
  return first != request.headers.end() && first->include_root == root;
}

bool CompilesForLto(const BuildRequest& request) {
  return flags::Has(flags::kCompiler, request.host_flags, Meaning::kLinkTimeOptimization);
}

}  // namespace

std::string HeaderName(const BuildRequest& request, const HeaderRef& header) {
  return JoinPath(IncludeRootFolder(request, header.include_root), header.path);
}

std::vector<std::string> QuoteIncludeFlags(const BuildRequest& request, const PlannedUnit& unit) {
  std::vector<std::string> flags;
  if (HasMacroHeader(request, *unit.language)) flags.push_back(StrCat("-iquote", kMacroFolder));
  // For both forms of `#include`, our headers come first.
  flags.push_back(StrCat("-iquote", kKernelHeaders));
  for (const SearchedRoot& searched : unit.roots) {
    if (!searched.only_quoted || !HasHeaders(request, searched.root)) continue;
    flags.push_back(StrCat("-iquote", IncludeRootFolder(request, searched.root)));
  }
  return flags;
}

std::vector<std::string> IncludeFlags(const BuildRequest& request, const PlannedUnit& unit) {
  std::vector<std::string> flags = {StrCat("-I", kKernelHeaders)};
  for (const SearchedRoot& searched : unit.roots) {
    if (searched.only_quoted || !HasHeaders(request, searched.root)) continue;
    flags.push_back(StrCat("-I", IncludeRootFolder(request, searched.root)));
  }
  flags.push_back(StrCat("-I", kLastKernelHeaders));
  return flags;
}

std::vector<std::string> PrefixMaps(const PlanInputs& inputs, exec::Action& action,
                                    const std::function<bool(std::string_view flag)>& is_usable) {
  std::vector<std::string> flags = {PrefixMap(StrCat(language::kSourceFolder, "/"), "")};
  for (const NamedFolder& folder : ToolchainFolders(*inputs.request.toolchain)) {
    const std::string reached = inputs.tools.Reach(folder.path);
    if (!is_usable(PrefixMap(reached, folder.name))) continue;
    const bool local = reached.starts_with('/');
    const std::string placeholder = StrCat("{", folder.name, "}");
    if (local) action.local_paths[placeholder] = reached;
    flags.push_back(PrefixMap(local ? placeholder : reached, folder.name));
  }
  return flags;
}

std::vector<std::string> DefaultStandard(const BuildRequest& request) {
  const bool chosen = flags::Has(flags::kCompiler, request.host_flags, Meaning::kStandard) ||
                      flags::Has(flags::kNvcc, request.nvcc_flags, Meaning::kStandard);
  if (chosen) return {};
  return {"-std=c++17"};
}

bool AssemblerTells(const BuildRequest& request) {
  return request.toolchain->host.kind == toolchain::HostCompilerKind::kGcc || !CompilesForLto(request);
}

bool CallsAssemblerForClang(const BuildRequest& request) {
  return request.toolchain->host.kind == toolchain::HostCompilerKind::kClang && AssemblerTells(request);
}

std::vector<std::string> AssemblerFlags(const BuildRequest& request, const PlannedUnit& unit) {
  if (!AssemblerTells(request)) return {};
  std::vector<std::string> flags = {"-Xassembler", "--MD", "-Xassembler", unit.assembler_dependencies};
  if (CallsAssemblerForClang(request)) {
    flags.emplace_back("-fno-integrated-as");
    return flags;
  }
  // Uses a pipe, so that the dependency files do not list a file between compiler and assembler.
  flags.emplace_back("-pipe");
  if (CompilesForLto(request)) flags.push_back("-ffat-lto-objects");
  return flags;
}

std::string StepName(std::string_view what, const PlannedUnit& unit) {
  return unit.label.empty() ? std::string(what) : StrCat(what, " ", unit.label);
}

std::vector<std::string> PrivateSymbolFlags(const toolchain::Toolchain& toolchain) {
  if (toolchain.host.kind != toolchain::HostCompilerKind::kGcc) return {};
  return {"-fno-gnu-unique"};
}

Step NewStep(const PlanInputs& inputs, std::string name, uint64_t memory_estimate_bytes) {
  Step step;
  step.action.step = std::move(name);
  step.action.work = exec::Work::kHostCompile;
  step.action.environment = inputs.environment;
  step.action.links = inputs.tools.links;
  step.action.local_paths = inputs.tools.local_paths;
  step.action.timeout = inputs.limits.step_timeout;
  step.action.memory_estimate_bytes = memory_estimate_bytes;
  return step;
}

std::map<v1::Language, const Compiler*>& Compilers() {
  static auto& compilers =
      *new std::map<v1::Language, const Compiler*>{{v1::LANGUAGE_CPP, &HostCompiler()}, {v1::LANGUAGE_CUDA, &Nvcc()}};
  return compilers;
}

bool WorkerTools::MayUseOthers(const BuildRequest& request) const {
  if (name.empty()) return false;
  if (!only_device_compiles) return true;
  const auto travels = [this](const std::string& path) {
    return std::any_of(shipped_folders.begin(), shipped_folders.end(),
                       [&](const std::string& folder) { return path == folder || IsBelow(path, folder); });
  };
  const toolchain::Toolchain& toolchain = *request.toolchain;
  return toolchain.cuda && !(travels(toolchain.cuda->root) && travels(toolchain.cuda->nvcc));
}

absl::StatusOr<Plan> MakePlan(const BuildRequest& request, const PlanLimits& limits) {
  Plan plan;
  plan.roots = MakeIncludeRoots(request);
  plan.trees = MountPoints(*plan.roots);
  plan.kernel_headers = std::make_shared<std::vector<exec::MountedTree>>(1, plan.trees->front());
  plan.toolchain = request.toolchain;
  PlanInputs inputs{request, limits};
  inputs.kernel_headers = plan.kernel_headers;
  KERNIX_ASSIGN_OR_RETURN(inputs.tools, FindToolPaths(*request.toolchain));
  inputs.environment = EnvironmentFor(*request.toolchain);
  inputs.link_files = FlagFiles(request);
  inputs.units = PlaceUnits(request, plan);
  const Compiler& compiler = *Compilers().at(request.language);
  const bool refused = !request.refusal.ok();
  for (const PlannedUnit& unit : inputs.units) {
    plan.steps.push_back(refused ? compiler.CheckSyntax(inputs, unit) : compiler.Compile(inputs, unit));
  }
  ModuleParts more;
  if (!refused) {
    more = compiler.More(inputs);
    Append(plan.steps, more.steps);
    if (CompilesHandlers(request)) plan.steps.push_back(HandlerStep(inputs));
    plan.steps.push_back(LinkStep(inputs, more));
  }
  const Digest salt = SaltOf(request, limits.workers);
  for (Step& step : plan.steps) {
    step.action.argv.shrink_to_fit();  // it has grown word by word, and waits
    step.action.salt = salt;
    step.action.needs_worker = request.toolchain->described != nullptr;
  }
  plan.files = FilesOf(inputs, std::move(more));
  return plan;
}

absl::Status StagePlan(const BuildRequest& request, HeaderContents contents, exec::KeptTrees& trees, Plan& plan) {
  AddPrologues(request, plan.roots->list, contents);
  for (Step& step : plan.steps) {
    for (exec::InputFile& input : step.action.inputs) {
      if (input.content != nullptr) continue;
      KERNIX_ASSIGN_OR_RETURN(input, Stage(std::move(input), contents));
    }
  }
  KERNIX_RETURN_IF_ERROR(CheckSizes(request, contents));
  std::vector<const RootTree*> mounted = {&KernelHeaderTree()};
  for (const RootTree& root : plan.roots->roots) mounted.push_back(&root);
  const std::vector<exec::InputTreePtr> staged = TreesOf(mounted, contents, trees);
  for (size_t i = 0; i < staged.size(); ++i) (*plan.trees)[i].tree = staged[i];
  plan.kernel_headers->front().tree = staged.front();
  return absl::OkStatus();
}

}  // namespace kernix::build
