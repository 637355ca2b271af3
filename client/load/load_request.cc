// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_request.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/load/compile_flags.h"
#include "client/tools/environment.h"
#include "client/tools/gpu_architecture.h"
#include "client/tools/toolchain_finder.h"
#include "common/base/error.h"
#include "common/base/nearest_name.h"
#include "common/base/processor.h"
#include "common/base/request_checks.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/flag_table.h"
#include "common/flags/languages.h"

namespace kernix {
namespace {

constexpr char kPolicyVariable[] = "KERNIX_POLICY";

absl::Status Invalid(const std::string& message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

void Append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// --- Arguments -------------------------------------------------------------------------------------------------------

absl::Status CheckUtf8(std::string_view what, const auto& texts) {
  for (const std::string& text : texts) {
    if (!IsValidUtf8(text)) return Invalid(StrCat(what, " \"", ToValidUtf8(text), "\" is not UTF-8"));
  }
  return absl::OkStatus();
}

absl::Status CheckFunctions(const std::optional<std::vector<Function>>& functions) {
  if (!functions) return absl::OkStatus();
  if (functions->empty()) {
    return Invalid(
        "the list of functions is empty: name the functions to export, or omit the list to use the "
        "`// @BE name [tokens]` lines of the source");
  }
  for (const Function& function : *functions) {
    KERNIX_RETURN_IF_ERROR(CheckUtf8("the function name", std::array{function.name}));
    KERNIX_RETURN_IF_ERROR(CheckUtf8("the token", function.tokens));
  }
  return absl::OkStatus();
}

// Folders of "-I" flags come without the flag.
absl::Status CheckFolders(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const size_t at = path.find("-I");
    const bool is_flag = at == 0 || (at != std::string::npos && (path[at - 1] == ' ' || path[at - 1] == '/'));
    if (!is_flag || access(path.c_str(), F_OK) == 0) continue;
    return Invalid(
        StrCat("the include path \"", path, "\" holds a flag: write each folder alone, \"", path.substr(at + 2), "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckArguments(const LanguageTraits& language, const std::string& name, const std::vector<Source>& sources,
                            const LoadOptions& options) {
  KERNIX_RETURN_IF_ERROR(CheckModuleName(name));
  if (sources.empty()) return Invalid(StrCat("module \"", name, "\" has no source"));
  KERNIX_RETURN_IF_ERROR(CheckFunctions(options.functions));
  KERNIX_RETURN_IF_ERROR(CheckFolders(options.include_paths));
  KERNIX_RETURN_IF_ERROR(CheckUtf8("compute_capability", std::array{options.compute_capability}));
  KERNIX_RETURN_IF_ERROR(CheckOptimizationLevel(options.optimization_level));
  if (!language.needs_nvcc && !options.compute_capability.empty()) {
    return Invalid("compute_capability is for CUDA sources only");
  }
  if (!language.needs_nvcc && options.keep) return Invalid("keep is for CUDA sources only");
  return absl::OkStatus();
}

// --- Sources ---------------------------------------------------------------------------------------------------------

std::string DefaultLabel(const std::string& name, const std::vector<Source>& sources, size_t i) {
  if (!sources[i].path.empty()) return Basename(sources[i].path);
  return sources.size() == 1 ? name : StrCat(name, "[", i, "]");
}

// A name as kernixd accepts it: without a path, a backslash, a control character, or a blank at an end.
std::string LabelToSend(const std::string& label) {
  std::string name = ToValidUtf8(label);
  const auto is_bad = [](unsigned char c) { return c == '/' || c == '\\' || c < 0x20 || c == 0x7f; };
  std::replace_if(name.begin(), name.end(), is_bad, '_');
  if (name.starts_with(' ')) name.front() = '_';
  if (name.ends_with(' ')) name.back() = '_';
  return name == "." || name == ".." ? StrCat("_", name) : name;
}

// Makes the labels of two files with the same name different.
std::string UniqueLabel(const std::string& label, std::set<std::string>& taken) {
  const std::string name = LabelToSend(label);
  std::string unique = name;
  for (int n = 2; !taken.insert(unique).second; ++n) unique = StrCat(name, "~", n);
  return unique;
}

void AddSources(const std::string& name, const std::vector<Source>& sources, bool separate, PreparedLoad& load) {
  std::set<std::string> labels;
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::string label = sources[i].label.empty() ? DefaultLabel(name, sources, i) : sources[i].label;
    v1::Source& source = *load.request.add_source();
    source.set_label(UniqueLabel(label, labels));
    source.set_text(sources[i].text);
    if (separate) source.set_language(LanguageOfFile(sources[i].path));  // other text has the module's language
    if (!sources[i].path.empty()) {
      load.names.AddSource(source.label(), AbsolutePath(sources[i].path));
    } else if (source.label() == LabelToSend(label)) {
      load.names.AddSource(source.label(), label);
    }
  }
}

void AddFunctions(const LoadOptions& options, v1::Functions& functions) {
  functions.set_from_annotations(!options.functions.has_value());
  if (!options.functions) return;
  for (const Function& function : *options.functions) {
    v1::Function& entry = *functions.add_function();
    entry.set_name(function.name);
    for (const std::string& token : function.tokens) entry.add_tokens(token);
  }
}

// --- Flags, toolchain, GPU -------------------------------------------------------------------------------------------

// The flags of a line that was split keep a blank: "-O3 ".
std::vector<std::string> WithoutLastBlanks(std::vector<std::string> words) {
  for (std::string& word : words) {
    if (word.starts_with('-')) absl::StripTrailingAsciiWhitespace(&word);
  }
  return words;
}

absl::StatusOr<SortedFlags> AllFlags(const LanguageTraits& language, const CompilerEnvironment& environment,
                                     const LoadOptions& options) {
  std::vector<std::string> flags = environment.flags_before;
  if (options.debug) Append(flags, language.debug_flags);
  Append(flags, WithoutLastBlanks(options.compile_flags));
  Append(flags, environment.flags_after);
  return SortFlags(language.language, flags);
}

// The library path is sent only if it can matter, because a shared daemon may refuse folders, and containers always set
// LIBRARY_PATH.
std::vector<std::string> LinkFlags(const LanguageTraits& language, const SortedFlags& flags,
                                   const CompilerEnvironment& environment, const LoadOptions& options) {
  std::vector<std::string> link = flags.link;
  Append(link, WithoutLastBlanks(options.link_flags));
  const std::vector<std::string> words = language.host_words_at_link(link);
  if (!flags::Has(flags::kCompilerAtLink, words, flags::Meaning::kLibrary)) return link;
  for (const std::string& path : environment.library_paths) link.push_back(StrCat("-L", AbsolutePath(path)));
  return link;
}

absl::Status AddToolchain(Env& env, const GetEnv& get_env, const std::vector<std::string>& site_packages,
                          v1::Language language, const SortedFlags& flags, const CompilerEnvironment& environment,
                          v1::LoadRequest& request, absl::Status& no_tools) {
  ToolchainSearch search{.language = language, .site_packages = site_packages};
  search.host_compiler = flags.host_compiler.empty() ? environment.host_compiler : flags.host_compiler;
  search.host_compiler_from = flags.host_compiler.empty() ? "NVCC_CCBIN" : "the flag -ccbin";
  absl::StatusOr<v1::ToolchainPaths> found = FindToolchain(env, get_env, search);
  if (KindOf(found.status()) == v1::ErrorDetail::TOOLCHAIN) {
    no_tools = found.status();
    return absl::OkStatus();
  }
  KERNIX_RETURN_IF_ERROR(CheckUtf8("the compiler's path", std::array{found->host_compiler(), found->nvcc()}));
  KERNIX_RETURN_IF_ERROR(CheckUtf8("the folder of CUDA's headers", found->cuda_include_directories()));
  KERNIX_RETURN_IF_ERROR(CheckUtf8("the folder of CUDA's libraries", found->cuda_library_directories()));
  KERNIX_RETURN_IF_ERROR(CheckUtf8("the variable", found->variable()));
  *request.mutable_toolchain() = *std::move(found);
  return absl::OkStatus();
}

absl::Status AddArchitectures(const CompilerEnvironment& environment, const LoadOptions& options, PreparedLoad& load) {
  constexpr absl::string_view kOfGpu = "native";  // as nvcc has it
  std::string asked = options.compute_capability.empty() ? environment.compute_capability : options.compute_capability;
  const bool is_of_gpu = asked.empty() || absl::StripAsciiWhitespace(asked) == kOfGpu;
  load.architecture_of_machine = is_of_gpu || options.compute_capability.empty();
  if (is_of_gpu) {
    KERNIX_ASSIGN_OR_RETURN(asked, DetectGpuArchitecture());
  }
  v1::Options& result = *load.request.mutable_options();
  result.set_architectures_of_gpu(is_of_gpu);
  for (const absl::string_view one : absl::StrSplit(asked, absl::ByAnyChar(",; \t"), absl::SkipEmpty())) {
    result.add_architectures(std::string(one));
  }
  if (!result.architectures().empty()) return absl::OkStatus();
  return Invalid(StrCat("compute_capability \"", asked,
                        "\" names no architecture: pass, for example, \"sm_90\", \"9.0\" or \"8.0,9.0\""));
}

void AddOptions(const SortedFlags& flags, const std::vector<std::string>& link_flags, const LoadOptions& options,
                v1::LoadRequest& request) {
  v1::Options& result = *request.mutable_options();
  for (const std::string& flag : flags.compile) result.add_compile_flags(flag);
  for (const std::string& flag : link_flags) result.add_link_flags(flag);
  result.set_optimization_level(options.debug ? 0 : options.optimization_level);
  result.set_separate_units(options.separate);
  result.set_keep(options.keep);
  result.set_use_fast_math(options.use_fast_math);
  result.set_allow_cuda_graph(options.allow_cuda_graph);
  request.set_force_rebuild(options.force_rebuild);
  request.set_verbose(options.verbose);
  request.set_max_parallel_jobs(options.max_parallel_jobs);
  request.set_batch(options.batch);
}

// --- Headers ---------------------------------------------------------------------------------------------------------

// In a compiler's search order.
std::vector<std::string> IncludePaths(const SortedFlags& flags, const CompilerEnvironment& environment,
                                      const LoadOptions& options) {
  std::vector<std::string> paths;
  for (const auto* part :
       {&options.include_paths, &flags.include_paths, &environment.include_paths, &flags.system_include_paths,
        &environment.system_include_paths, &flags.last_include_paths, &options.last_include_paths}) {
    for (const std::string& path : *part) paths.push_back(AbsolutePath(path));
  }
  return paths;
}

// The folders that the compilers search by default.
std::vector<std::string> ToolchainFolders(const v1::ToolchainPaths& toolchain) {
  std::vector<std::string> folders(toolchain.cuda_include_directories().begin(),
                                   toolchain.cuda_include_directories().end());
  if (!toolchain.nvcc().empty()) {
    const std::string toolkit = Dirname(Dirname(toolchain.nvcc()));
    Append(folders, {JoinPath(toolkit, "include"), JoinPath(toolkit, StrCat(kCudaTarget, "/include"))});
  }
  for (size_t i = 0, cuda = folders.size(); i < cuda; ++i) folders.push_back(JoinPath(folders[i], "cccl"));
  Append(folders, {"/usr/include", "/usr/local/include"});
  return folders;
}

void WarnOfMissingPaths(Env& env, const LoadOptions& options, std::vector<LoadWarning>& warnings) {
  for (const std::string& path : options.include_paths) {
    const absl::StatusOr<FileInfo> info = env.Stat(AbsolutePath(path));
    if (info.ok() && info->type == FileType::kDirectory) continue;
    warnings.push_back(
        {warning::kMissingIncludePath, StrCat("the include path ", path, " is not a folder and is not searched")});
  }
}

SourceToScan ToScan(const Source& source, const v1::Source& sent) {
  const std::string path = source.path.empty() ? "" : AbsolutePath(source.path);
  return {source.text, path.empty() ? sent.label() : path, path.empty() ? "" : Dirname(path)};
}

// Each unit has its own folder, which no other unit searches.
absl::Status ScanUnits(Env& env, HeaderTable& table, HeaderScanRequest scan, const std::vector<SourceToScan>& sources,
                       PreparedLoad& load) {
  for (size_t i = 0; i < sources.size(); ++i) {
    scan.sources = {sources[i]};
    KERNIX_ASSIGN_OR_RETURN(const HeaderScan found, ScanHeaders(env, PerProcess<HeaderFiles>::Get(), table, scan));
    const std::vector<uint32_t> places = load.headers.Merge(found);
    v1::Source& source = *load.request.mutable_source(static_cast<int>(i));
    for (const uint32_t place : places) source.add_include_root(place);
    for (const uint32_t root : found.quoted_roots) source.add_quoted_include_root(places[root]);
  }
  return absl::OkStatus();
}

absl::Status ScanTogether(Env& env, HeaderTable& table, HeaderScanRequest scan, std::vector<SourceToScan> sources,
                          PreparedLoad& load) {
  scan.sources = std::move(sources);
  KERNIX_ASSIGN_OR_RETURN(load.headers, ScanHeaders(env, PerProcess<HeaderFiles>::Get(), table, scan));
  for (const uint32_t root : load.headers.quoted_roots) load.request.mutable_options()->add_quoted_include_root(root);
  return absl::OkStatus();
}

absl::Status AddHeaders(const LoadSurroundings& surroundings, const std::vector<Source>& sources,
                        std::vector<std::string> include_paths, PreparedLoad& load) {
  Env& env = surroundings.env;
  HeaderTable table(env, surroundings.header_folder);
  HeaderScanRequest scan;
  scan.include_paths = std::move(include_paths);
  scan.toolchain_folders = ToolchainFolders(load.request.toolchain());
  std::vector<SourceToScan> texts;
  for (size_t i = 0; i < sources.size(); ++i) {
    texts.push_back(ToScan(sources[i], load.request.source(static_cast<int>(i))));
  }
  const bool separate = load.request.options().separate_units();
  KERNIX_RETURN_IF_ERROR(separate ? ScanUnits(env, table, std::move(scan), texts, load)
                                  : ScanTogether(env, table, std::move(scan), std::move(texts), load));
  table.Save();
  load.request.mutable_options()->set_include_root_count(load.headers.include_root_count);
  *load.request.mutable_header() = {load.headers.headers.begin(), load.headers.headers.end()};
  for (const v1::Header& marker : load.headers.folders) *load.request.add_header() = marker;
  load.names.SetIncludeRoots(load.headers.roots);
  return absl::OkStatus();
}

// Adds those that this process has not given before.
void AddWarnings(std::string_view name, const std::vector<std::string>& texts, std::vector<LoadWarning>& warnings) {
  for (const std::string& text : texts) {
    if (IsFirstWarning(text)) warnings.push_back({name, text});
  }
}

}  // namespace

const std::vector<std::string> kPolicyNames = {"build", "cached"};

absl::StatusOr<LoadPolicy> PolicyNamed(std::string_view name, std::string_view where) {
  if (name == kPolicyNames[0]) return LoadPolicy::kBuild;
  if (name == kPolicyNames[1]) return LoadPolicy::kCached;
  return Invalid(StrCat(where, " is \"", name, "\". It takes ", absl::StrJoin(kPolicyNames, " and "), ".",
                        DidYouMean(std::string(name), kPolicyNames)));
}

absl::StatusOr<LoadPolicy> PolicyOf(const LoadOptions& options, const GetEnv& get_env) {
  const std::optional<std::string> of_environment = options.policy ? std::nullopt : get_env(kPolicyVariable);
  LoadPolicy policy = options.policy.value_or(LoadPolicy::kBuild);
  if (of_environment) {
    KERNIX_ASSIGN_OR_RETURN(policy, PolicyNamed(*of_environment, StrCat("the environment variable ", kPolicyVariable)));
  }
  if (policy == LoadPolicy::kBuild || !options.force_rebuild) return policy;
  const std::string what = of_environment   ? StrCat(kPolicyVariable, "=cached")
                           : options.frozen ? "a frozen process"
                                            : "the policy \"cached\"";
  return Invalid(StrCat("force_rebuild compiles, and ", what, " forbids that: use one of them"));
}

absl::StatusOr<PreparedLoad> PrepareLoad(const LoadSurroundings& surroundings, v1::Language language,
                                         const std::string& name, const std::vector<Source>& sources,
                                         const LoadOptions& options) {
  Env& env = surroundings.env;
  const GetEnv& get_env = surroundings.get_env;
  const LanguageTraits& traits = TraitsOf(language);
  KERNIX_RETURN_IF_ERROR(CheckArguments(traits, name, sources, options));
  KERNIX_ASSIGN_OR_RETURN(const LoadPolicy policy, PolicyOf(options, get_env));
  KERNIX_ASSIGN_OR_RETURN(const CompilerEnvironment environment, ReadCompilerEnvironment(get_env, language));
  KERNIX_ASSIGN_OR_RETURN(const SortedFlags flags, AllFlags(traits, environment, options));
  PreparedLoad load;
  load.host_compiler = flags.host_compiler;
  AddWarnings(warning::kVariableWithoutEffect, environment.warnings, load.warnings);
  if (traits.needs_nvcc) AddWarnings(warning::kCudaHome, CudaRootWarnings(env, get_env), load.warnings);
  WarnOfMissingPaths(env, options, load.warnings);
  load.request.set_name(name);
  load.request.set_language(language);
  AddSources(name, sources, options.separate, load);
  AddFunctions(options, *load.request.mutable_functions());
  AddOptions(flags, LinkFlags(traits, flags, environment, options), options, load.request);
  KERNIX_RETURN_IF_ERROR(CheckUtf8("the compiler flag", load.request.options().compile_flags()));
  KERNIX_RETURN_IF_ERROR(CheckUtf8("the linker flag", load.request.options().link_flags()));
  load.request.set_only_cached(policy == LoadPolicy::kCached);
  load.request.set_frozen(options.frozen);
  KERNIX_RETURN_IF_ERROR(AddToolchain(env, get_env, surroundings.site_packages, language, flags, environment,
                                      load.request, load.no_tools));
  if (traits.needs_nvcc) {
    KERNIX_RETURN_IF_ERROR(AddArchitectures(environment, options, load));
  }
  KERNIX_RETURN_IF_ERROR(AddHeaders(surroundings, sources, IncludePaths(flags, environment, options), load));
  return load;
}

absl::StatusOr<RequestToSend> RequestHere(const LoadSurroundings& surroundings, const v1::RecordedLoad& load) {
  RequestToSend result{.request = load.request(), .no_tools = absl::OkStatus()};
  v1::LoadRequest& request = result.request;
  KERNIX_ASSIGN_OR_RETURN(const CompilerEnvironment environment,
                          ReadCompilerEnvironment(surroundings.get_env, request.language()));
  KERNIX_RETURN_IF_ERROR(AddToolchain(surroundings.env, surroundings.get_env, surroundings.site_packages,
                                      request.language(), SortedFlags{.host_compiler = load.host_compiler()},
                                      environment, request, result.no_tools));
  if (!load.architecture_of_machine()) return result;
  if (const absl::StatusOr<std::string> gpu = DetectGpuArchitecture(); gpu.ok()) {
    request.mutable_options()->clear_architectures();
    request.mutable_options()->add_architectures(*gpu);
    request.mutable_options()->set_architectures_of_gpu(true);
  }
  return result;
}

absl::Status WrongTools(const absl::Status& no_tools) { return LacksTools(no_tools) ? absl::OkStatus() : no_tools; }

absl::Status WithoutTools(const absl::Status& answer, const RequestToSend& sent) {
  if (!LacksTools(answer)) return answer;
  const absl::Status& why = sent.no_tools.ok() ? answer : sent.no_tools;
  if (!sent.request.only_cached()) return why;
  return MakeError(
      v1::ErrorDetail::NOT_CACHED,
      StrCat("the cache does not have the kernels of module \"", sent.request.name(),
             "\", and the policy \"cached\" compiles nothing. Nothing could, either: ", GetErrorDetail(why).message()));
}

}  // namespace kernix
