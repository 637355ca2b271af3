// SPDX-License-Identifier: Apache-2.0
#include "daemon/request/request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/request_checks.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/languages.h"
#include "common/wire/input_root.h"
#include "daemon/language/read/function_name.h"
#include "daemon/language/read/resolve.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/toolchain/cuda_toolkit.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

constexpr uint32_t kMaxIncludeRoots = 1000;
// The limit of common file systems, less some room for the build's folder.
constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxComponentBytes = 255;
constexpr size_t kMaxComponents = 64;

absl::Status Invalid(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

bool HasControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// The grammar of names that requests give to files, and that tools write into lists of files, command lines and
// messages: whoever reads these has nothing to unescape but a blank. "" if `name` keeps it.
std::string WhyNoFileName(std::string_view name) {
  if (HasControlCharacter(name)) return "contains control characters";
  if (name.find('\\') != std::string_view::npos) return "contains a backslash, which tools take for an escape";
  if (name.starts_with(' ') || name.ends_with(' ')) return "begins or ends with a blank";
  return "";
}

absl::Status CheckPathLength(std::string_view path) {
  if (path.size() > kMaxPathBytes) {
    return Invalid(StrCat("the header path \"", path.substr(0, 64), "...\" has ", path.size(), " bytes; at most ",
                          kMaxPathBytes, " are allowed"));
  }
  const std::vector<absl::string_view> components = absl::StrSplit(ToAbsl(path), '/');
  if (components.size() > kMaxComponents) {
    return Invalid(StrCat("the header path \"", path.substr(0, 64), "...\" has ", components.size(), " parts; at most ",
                          kMaxComponents, " are allowed"));
  }
  for (const absl::string_view component : components) {
    if (const std::string why = WhyNoFileName(ToStd(component)); !why.empty()) {
      return Invalid(StrCat("the header path \"", Printable(path.substr(0, 64)), "\" has a part that ", why,
                            ": rename the file or folder"));
    }
    if (absl::EndsWith(component, ".gch") || absl::EndsWith(component, ".pch")) {
      return Invalid(StrCat("the header path \"", path.substr(0, 64),
                            "\" names a precompiled header, which a compiler would load: send the header itself"));
    }
    if (component.size() > kMaxComponentBytes) {
      return Invalid(StrCat("the header path \"", path.substr(0, 64), "...\" has a part of ", component.size(),
                            " bytes; at most ", kMaxComponentBytes, " are allowed"));
    }
  }
  return absl::OkStatus();
}

bool IsPath(std::string_view label) {
  return label.find('/') != std::string_view::npos || label == "." || label == "..";
}

absl::Status CheckLabel(std::string_view label) {
  if (label.empty()) return Invalid("a source has no label: give a name for diagnostics");
  if (const std::string why = WhyNoFileName(label); !why.empty()) {
    return Invalid(StrCat("the source label \"", Printable(label.substr(0, 64)), "\" ", why));
  }
  if (IsPath(label)) {
    return Invalid(StrCat("the source label \"", label, "\" is a path: give a name without \"/\""));
  }
  // The label need not be a valid file name: a source whose label is not one is not staged.
  if (label.size() <= kMaxPathBytes) return absl::OkStatus();
  return Invalid(StrCat("the source label \"", label.substr(0, 64), "...\" has ", label.size(), " bytes; at most ",
                        kMaxPathBytes, " are allowed"));
}

absl::Status CheckSources(const v1::LoadRequest& request, const RequestLimits& limits) {
  uint64_t bytes = 0;
  bool blank = true;
  for (const v1::Source& source : request.source()) {
    KERNIX_RETURN_IF_ERROR(CheckLabel(source.label()));
    bytes += source.text().size();
    blank = blank && IsBlank(source.text());
  }
  if (blank) return Invalid("the source is empty: there is nothing to compile");
  if (bytes > limits.max_source_bytes) {
    return Invalid(StrCat("the sources have ", bytes, " bytes; this kernixd accepts at most ", limits.max_source_bytes,
                          " (its option max_request_bytes)"));
  }
  return absl::OkStatus();
}

std::vector<language::SourceText> Sources(const v1::LoadRequest& request) {
  std::vector<language::SourceText> sources;
  for (const v1::Source& source : request.source()) sources.push_back({source.label(), source.text()});
  return sources;
}

absl::StatusOr<std::vector<std::vector<language::FunctionSpec>>> ResolveByUnit(
    const v1::LoadRequest& request, const std::vector<language::SourceText>& sources,
    const std::vector<std::string>& definitions) {
  if (request.options().separate_units()) {
    return language::ResolveUnitFunctions(sources, request.functions(), definitions);
  }
  KERNIX_ASSIGN_OR_RETURN(std::vector<language::FunctionSpec> specs,
                          language::ResolveFunctions(sources, request.functions(), definitions));
  return std::vector<std::vector<language::FunctionSpec>>{std::move(specs)};
}

absl::Status CheckFunctionCount(size_t count, const RequestLimits& limits) {
  if (count <= limits.max_functions) return absl::OkStatus();
  return Invalid(StrCat(count, " functions in one load; at most ", limits.max_functions, " are allowed"));
}

// The functions that each unit exports. None if they cannot be found: then sets the result's `refusal`.
absl::StatusOr<std::vector<std::vector<language::FunctionSpec>>> ReadFunctions(
    const v1::LoadRequest& request, const std::vector<language::SourceText>& sources, const RequestLimits& limits,
    BuildRequest& result) {
  const v1::Functions& functions = request.functions();
  if (functions.from_annotations() && functions.function_size() > 0) {
    return Invalid("functions are either listed or taken from `// @BE` annotations, not both");
  }
  KERNIX_RETURN_IF_ERROR(CheckFunctionCount(static_cast<size_t>(functions.function_size()), limits));
  auto specs = ResolveByUnit(request, sources, result.definitions);
  if (!specs.ok()) {
    result.refusal = specs.status();
    return std::vector<std::vector<language::FunctionSpec>>(request.options().separate_units() ? sources.size() : 1);
  }
  size_t count = 0;
  for (const std::vector<language::FunctionSpec>& unit : *specs) count += unit.size();
  KERNIX_RETURN_IF_ERROR(CheckFunctionCount(count, limits));
  return specs;
}

// In the order of the list, if there is one.
std::vector<language::FunctionSpec> InOrderOf(const v1::Functions& functions, const std::vector<Unit>& units) {
  std::vector<language::FunctionSpec> all;
  for (const Unit& unit : units) all.insert(all.end(), unit.functions.begin(), unit.functions.end());
  absl::flat_hash_map<std::string, int> places;
  for (int i = 0; i < functions.function_size(); ++i) {
    const absl::StatusOr<language::FunctionName> name = language::ParseFunctionName(functions.function(i).name());
    if (name.ok()) places.emplace(name->Exported(), i);
  }
  if (places.empty()) return all;
  std::sort(all.begin(), all.end(),
            [&](const auto& a, const auto& b) { return places.at(a.name) < places.at(b.name); });
  return all;
}

absl::StatusOr<v1::Language> UnitLanguage(const v1::LoadRequest& request, const v1::Source& source) {
  const v1::Language language = source.language() == v1::LANGUAGE_UNSPECIFIED ? request.language() : source.language();
  if (TraitsOf(language).language != language) {
    return Invalid(StrCat(source.label(), ": the request names a language that this kernixd does not know"));
  }
  if (language == request.language() || language == v1::LANGUAGE_CPP) return language;
  return Invalid(StrCat(source.label(), " is ", TraitsOf(language).name, ", but this load is ",
                        TraitsOf(request.language()).name,
                        ": load it with load_cuda_file, which also accepts C++ sources"));
}

using Indices = google::protobuf::RepeatedField<uint32_t>;

absl::StatusOr<std::vector<SearchedRoot>> SearchedRoots(const Indices& roots, const Indices& quoted, uint32_t count) {
  const auto searched = static_cast<uint32_t>(std::max(roots.size(), quoted.size()));
  if (searched > kMaxIncludeRoots) {
    return Invalid(
        StrCat("a source searches ", searched, " include roots; at most ", kMaxIncludeRoots, " are allowed"));
  }
  std::vector<SearchedRoot> result;
  for (const uint32_t root : roots) {
    result.push_back({root, std::find(quoted.begin(), quoted.end(), root) != quoted.end()});
  }
  const auto missing = [&](uint32_t root) { return root >= count; };
  if (std::none_of(roots.begin(), roots.end(), missing) && std::none_of(quoted.begin(), quoted.end(), missing)) {
    return result;
  }
  return Invalid(StrCat("the request searches an include root that is not among its ", count, " include roots"));
}

// A single unit of all sources searches all roots.
absl::StatusOr<std::vector<SearchedRoot>> AllRoots(const v1::Options& options) {
  Indices all;
  for (uint32_t root = 0; root < options.include_root_count(); ++root) all.Add(root);
  return SearchedRoots(all, options.quoted_include_root(), options.include_root_count());
}

absl::StatusOr<Unit> SeparateUnit(const v1::LoadRequest& request, const v1::Source& source) {
  Unit unit;
  KERNIX_ASSIGN_OR_RETURN(unit.language, UnitLanguage(request, source));
  KERNIX_ASSIGN_OR_RETURN(unit.roots, SearchedRoots(source.include_root(), source.quoted_include_root(),
                                                    request.options().include_root_count()));
  unit.sources = {{source.label(), source.text()}};
  return unit;
}

absl::StatusOr<std::vector<Unit>> MakeUnits(const v1::LoadRequest& request, std::vector<language::SourceText> sources) {
  std::vector<Unit> units;
  if (!request.options().separate_units()) {
    KERNIX_ASSIGN_OR_RETURN(std::vector<SearchedRoot> roots, AllRoots(request.options()));
    units.push_back({request.language(), std::move(sources), {}, std::move(roots)});
    return units;
  }
  for (const v1::Source& source : request.source()) {
    KERNIX_ASSIGN_OR_RETURN(Unit unit, SeparateUnit(request, source));
    units.push_back(std::move(unit));
  }
  return units;
}

// A function's property that only CUDA has, as "is a __global__ function"; empty if it has none.
std::string_view PartOfCuda(const language::FunctionSpec& function) {
  if (function.is_global) return "is a __global__ function";
  const auto is_map = [](const language::Parameter& parameter) { return parameter.IsTensorMap(); };
  return std::any_of(function.parameters.begin(), function.parameters.end(), is_map) ? "takes a CUtensorMap" : "";
}

absl::Status CheckNeedsNoCuda(const Unit& unit) {
  if (TraitsOf(unit.language).runs_on_gpu) return absl::OkStatus();
  for (const language::FunctionSpec& function : unit.functions) {
    const std::string_view part = PartOfCuda(function);
    if (part.empty()) continue;
    const std::string& place = function.declared_at.empty() ? unit.sources[0].label : function.declared_at;
    return Invalid(StrCat("function '", function.name, "' (", place, ") ", part,
                          ", but the source is C++: load it with load_cuda_inline, or from a .cu file"));
  }
  return absl::OkStatus();
}

absl::Status ReadUnits(const v1::LoadRequest& request, const RequestLimits& limits, BuildRequest& result) {
  std::vector<language::SourceText> sources = Sources(request);
  KERNIX_ASSIGN_OR_RETURN(std::vector<std::vector<language::FunctionSpec>> functions,
                          ReadFunctions(request, sources, limits, result));
  if (functions.size() > limits.max_units) {
    return Invalid(
        StrCat(functions.size(), " separate sources in one load; at most ", limits.max_units, " are allowed"));
  }
  KERNIX_ASSIGN_OR_RETURN(result.units, MakeUnits(request, std::move(sources)));
  for (size_t i = 0; i < result.units.size(); ++i) {
    result.units[i].functions = std::move(functions[i]);
    KERNIX_RETURN_IF_ERROR(CheckNeedsNoCuda(result.units[i]));
  }
  result.functions = InOrderOf(request.functions(), result.units);
  return absl::OkStatus();
}

// The most steps that a plan may have for a unit: the compile step, and three for each architecture whose results are
// kept.
size_t StepsFor(const BuildRequest& request, const Unit& unit) {
  const bool kept = request.keep && TraitsOf(unit.language).runs_on_gpu;
  return 1 + (kept ? 3 * request.architectures.size() : 0);
}

// The room that the flags and macros of a request take in the command or text of one step.
uint64_t FlagBytes(const BuildRequest& request) {
  uint64_t bytes = 0;
  for (const std::vector<std::string>* words : {&request.host_flags, &request.nvcc_flags, &request.definitions}) {
    for (const std::string& word : *words) bytes += sizeof(std::string) + word.size();
  }
  return bytes;
}

// Must run before the plan is made.
absl::Status CheckPlanSize(const BuildRequest& request, const RequestLimits& limits) {
  constexpr uint64_t kRootBytes = 64;  // "-Iinc/12", seldom more
  const uint64_t flag_bytes = FlagBytes(request);
  size_t steps = 0;
  uint64_t bytes = 0;
  for (const Unit& unit : request.units) {
    const size_t own = StepsFor(request, unit);
    steps += own;
    bytes += own * (flag_bytes + unit.roots.size() * kRootBytes);
  }
  if (steps > limits.max_steps) {
    return Invalid(
        StrCat("this load takes ", steps, " steps for its ", request.units.size(), " separate sources and ",
               request.architectures.size(), " architectures; at most ", limits.max_steps,
               " are allowed: leave out keep, name fewer architectures, or put fewer sources into one load"));
  }
  if (bytes <= limits.max_command_bytes) return absl::OkStatus();
  return Invalid(StrCat("the flags and include paths of this load take ", bytes, " bytes in the commands of its ",
                        steps, " steps; at most ", limits.max_command_bytes,
                        " are allowed: use fewer of them, or put fewer sources into one load"));
}

absl::Status CheckHeaderPath(const std::string& path) {
  KERNIX_RETURN_IF_ERROR(CheckPathLength(path));
  std::string_view below = path;
  const int climbs = TakeClimbs(below);
  const bool inside = !below.empty() && below.front() != '/' && below != "." && below != ".." && climbs <= kMaxClimb &&
                      NormalizePath(path) == path;
  // The name of the build's own folder, which would lead back down.
  const bool own = climbs > 0 && below.substr(0, below.find('/')) == kClimbFolder;
  if (inside && !own) return absl::OkStatus();
  return Invalid(StrCat("header path \"", path, "\" is not a normalised path below its include root, or at most ",
                        kMaxClimb, " folders above it"));
}

absl::StatusOr<HeaderRef> ReadHeader(const v1::Header& header, uint32_t root_count) {
  KERNIX_RETURN_IF_ERROR(CheckHeaderPath(header.path()));
  if (header.include_root() >= root_count) {
    return Invalid(
        StrCat("header \"", header.path(), "\" names include root ", header.include_root(), " of ", root_count));
  }
  const absl::StatusOr<Digest> digest = Digest::FromRaw(header.digest());
  if (!digest.ok()) return Invalid(StrCat("header \"", header.path(), "\" has no SHA-256 digest"));
  return HeaderRef{header.include_root(), header.path(), *digest, header.size()};
}

// Orders paths as in a walk of the tree: the contents of a folder come directly after a file with the folder's name.
bool ComesBefore(const HeaderRef& a, const HeaderRef& b) {
  if (a.include_root != b.include_root) return a.include_root < b.include_root;
  return std::lexicographical_compare(a.path.begin(), a.path.end(), b.path.begin(), b.path.end(), [](char x, char y) {
    const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
    return rank(x) < rank(y);
  });
}

// A path must name one file: not two, and not both a file and a folder. `headers` must be sorted.
absl::Status CheckHeadersFitTogether(const std::vector<HeaderRef>& headers) {
  for (size_t i = 1; i < headers.size(); ++i) {
    const HeaderRef& one = headers[i - 1];
    const HeaderRef& next = headers[i];
    if (one.include_root != next.include_root || !next.path.starts_with(one.path)) continue;
    if (next.path.size() == one.path.size()) return Invalid(StrCat("header \"", one.path, "\" is listed twice"));
    if (next.path[one.path.size()] == '/') {
      return Invalid(StrCat("header \"", one.path, "\" is also a folder of other headers"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFolderCount(const std::vector<HeaderRef>& headers, const RequestLimits& limits) {
  const size_t folders = CountFolders(headers);
  if (folders <= limits.max_header_folders) return absl::OkStatus();
  return Invalid(StrCat("the headers of this load lie in ", folders, " folders; at most ", limits.max_header_folders,
                        " are allowed: narrow the include paths"));
}

absl::StatusOr<std::vector<HeaderRef>> ReadHeaders(const v1::LoadRequest& request, const RequestLimits& limits) {
  if (static_cast<size_t>(request.header_size()) > limits.max_headers) {
    return Invalid(StrCat(request.header_size(), " headers in one load; at most ", limits.max_headers,
                          " are allowed: narrow the include paths"));
  }
  std::vector<HeaderRef> headers;
  headers.reserve(request.header_size());
  for (const v1::Header& header : request.header()) {
    KERNIX_ASSIGN_OR_RETURN(HeaderRef read, ReadHeader(header, request.options().include_root_count()));
    headers.push_back(std::move(read));
  }
  std::sort(headers.begin(), headers.end(), ComesBefore);
  KERNIX_RETURN_IF_ERROR(CheckHeadersFitTogether(headers));
  KERNIX_RETURN_IF_ERROR(CheckFolderCount(headers, limits));
  return headers;
}

std::vector<int> RootClimbs(const std::vector<HeaderRef>& headers, uint32_t root_count) {
  std::vector<int> climbs(root_count);
  for (const HeaderRef& header : headers) {
    std::string_view path = header.path;
    climbs[header.include_root] = std::max(climbs[header.include_root], TakeClimbs(path));
  }
  return climbs;
}

absl::StatusOr<std::vector<std::string>> ReadArchitectures(const v1::Options& options,
                                                           const toolchain::CudaToolkit& cuda) {
  if (options.architectures().empty()) {
    return Invalid("no GPU architecture: give compute_capability, for example \"sm_90\"");
  }
  return toolchain::CheckArchitectures(cuda, {options.architectures().begin(), options.architectures().end()},
                                       options.architectures_of_gpu());
}

// nvdisasm may be missing and is not part of the toolchain's identity. Must run after the flags are checked, because it
// adds to their files.
absl::Status AddDisassembler(Env& env, BuildRequest& request) {
  const toolchain::Toolchain& toolchain = *request.toolchain;
  const std::optional<std::string> path = toolchain::FindPart(
      env, toolchain, toolchain::ProgramFolders(*toolchain.cuda, toolchain.host), toolchain::kDisassembler);
  if (!path) return absl::OkStatus();
  toolchain::HostFacts own_facts(env);
  toolchain::HostFacts& facts = toolchain.facts != nullptr ? *toolchain.facts : own_facts;
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, toolchain::DigestOfPart(toolchain, facts.digests(), *path));
  request.disassembler = *path;
  request.flag_files.push_back({"", *path, digest});
  return absl::OkStatus();
}

absl::Status CheckHostOptions(const v1::Options& options) {
  if (!options.architectures().empty()) return Invalid("GPU architectures are for CUDA sources only");
  if (options.keep()) return Invalid("keep is for CUDA sources: it keeps PTX and machine code of the GPU");
  if (options.use_fast_math()) return Invalid("use_fast_math is for CUDA sources; for C++ pass the flag -ffast-math");
  return absl::OkStatus();
}

absl::Status ReadOptions(Env& env, const v1::Options& options, toolchain::FlagPolicy policy, BuildRequest& request) {
  KERNIX_RETURN_IF_ERROR(CheckOptimizationLevel(options.optimization_level()));
  if (options.include_root_count() > kMaxIncludeRoots) {
    return Invalid(StrCat(options.include_root_count(), " include paths; at most ", kMaxIncludeRoots, " are allowed"));
  }
  KERNIX_ASSIGN_OR_RETURN(toolchain::CheckedFlags flags,
                          toolchain::CheckFlags(env, *request.toolchain, request.language, policy,
                                                {options.compile_flags().begin(), options.compile_flags().end()},
                                                {options.link_flags().begin(), options.link_flags().end()}));
  request.host_flags = std::move(flags.host);
  request.nvcc_flags = std::move(flags.nvcc);
  request.definitions = std::move(flags.definitions);
  request.link_flags = std::move(flags.link);
  request.flag_files = std::move(flags.files);
  request.relocatable_device_code = flags.relocatable_device_code;
  request.optimization_level = static_cast<int>(options.optimization_level());
  request.use_fast_math = options.use_fast_math();
  request.allow_cuda_graph = options.allow_cuda_graph();
  request.include_root_count = options.include_root_count();
  request.keep = options.keep();
  if (request.keep) KERNIX_RETURN_IF_ERROR(AddDisassembler(env, request));
  return absl::OkStatus();
}

absl::Status ReadLanguage(const v1::LoadRequest& request, BuildRequest& result) {
  result.language = request.language();
  const LanguageTraits& traits = TraitsOf(result.language);
  if (traits.language != result.language) return Invalid("the request does not say whether it is C++ or CUDA");
  if (traits.needs_nvcc && !result.toolchain->cuda) {
    return MakeError(v1::ErrorDetail::TOOLCHAIN, "CUDA sources need nvcc, and this toolchain has none");
  }
  if (!traits.needs_nvcc) return CheckHostOptions(request.options());
  KERNIX_ASSIGN_OR_RETURN(result.architectures, ReadArchitectures(request.options(), *result.toolchain->cuda));
  return absl::OkStatus();
}

}  // namespace

size_t NewFolders(std::string_view path, std::string_view previous) {
  const auto differ = std::mismatch(path.begin(), path.end(), previous.begin(), previous.end()).first;
  return static_cast<size_t>(std::count(differ, path.end(), '/'));
}

size_t CountFolders(const std::vector<HeaderRef>& headers) {
  size_t folders = 0;
  for (size_t i = 0; i < headers.size(); ++i) {
    const bool begins_root = i == 0 || headers[i].include_root != headers[i - 1].include_root;
    folders += NewFolders(headers[i].path, begins_root ? "" : headers[i - 1].path);
  }
  return folders;
}

language::TranslationUnit UnitText(const BuildRequest& request, const Unit& unit) {
  return language::GenerateTranslationUnit(
      request.language, unit.sources, unit.functions, request.allow_cuda_graph,
      /*has_headers=*/!request.headers.empty(), request.definitions,
      /*defined_before=*/!TraitsOf(unit.language).first_header.empty());  // by language::HeaderWith()
}

absl::StatusOr<BuildRequest> ValidateRequest(Env& env, const v1::LoadRequest& request,
                                             toolchain::ToolchainPtr toolchain, toolchain::FlagPolicy policy,
                                             const RequestLimits& limits) {
  BuildRequest result;
  result.toolchain = std::move(toolchain);
  KERNIX_RETURN_IF_ERROR(CheckModuleName(request.name()));
  KERNIX_RETURN_IF_ERROR(ReadLanguage(request, result));
  KERNIX_RETURN_IF_ERROR(CheckSources(request, limits));
  KERNIX_RETURN_IF_ERROR(ReadOptions(env, request.options(), policy, result));
  KERNIX_ASSIGN_OR_RETURN(result.headers, ReadHeaders(request, limits));
  result.root_climbs = RootClimbs(result.headers, result.include_root_count);
  KERNIX_RETURN_IF_ERROR(ReadUnits(request, limits, result));
  KERNIX_RETURN_IF_ERROR(CheckPlanSize(result, limits));
  return result;
}

}  // namespace kernix::build
