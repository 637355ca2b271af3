// SPDX-License-Identifier: Apache-2.0
#include "kernix/load.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "client/bundle/bundle_search.h"
#include "client/connection/daemon_client.h"
#include "client/load/compile_flags.h"
#include "client/load/diagnostics.h"
#include "client/load/history.h"
#include "client/load/kernel_resources.h"
#include "client/load/load_memo.h"
#include "client/load/load_request.h"
#include "client/load/matching_files.h"
#include "client/load/module.h"
#include "client/load/recording.h"
#include "client/tools/environment.h"
#include "client/tools/gpu_architecture.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/private_directory.h"

namespace kernix {
namespace {

void Warn(const LoadCallbacks& callbacks, const std::string& warning) {
  if (callbacks.warning) {
    callbacks.warning(warning);
  } else {
    Log(LogLevel::kWarning, "kernix.load", {{"warning", warning}});
  }
}

// Gives a warning that the user has not switched off.
void Warn(const LoadCallbacks& callbacks, const GetEnv& get_env, std::string_view name, std::string_view text) {
  if (const std::optional<std::string> shown = ShownWarning(get_env, name, text)) Warn(callbacks, *shown);
}

// The caller's callbacks, with the caller's own file names in the compiler output. `names` must outlive them.
LoadCallbacks WithPaths(const LoadCallbacks& callbacks, const PathNames& names) {
  LoadCallbacks result = callbacks;
  if (callbacks.output) {
    result.output = [&](std::string_view text) { callbacks.output(names.Restore(text)); };
  }
  return result;
}

absl::Status WithPaths(const absl::Status& status, const PreparedLoad& load) {
  if (status.ok()) return status;
  v1::ErrorDetail detail = GetErrorDetail(status);
  detail.set_message(load.names.Restore(detail.message()));
  detail.set_compiler_output(load.names.Restore(detail.compiler_output()));
  if (detail.has_failed_command()) {
    AddIncludeRoots(load.headers.headers, load.headers.roots, *detail.mutable_failed_command());
  }
  return MakeError(std::move(detail));
}

std::vector<std::string> Texts(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

void NoteInputs(const PreparedLoad& load, LoadInputs& inputs) {
  const HeaderScan& scan = load.headers;
  const v1::Options& options = load.request.options();
  const FlagFiles flags =
      FindFlagFiles(Env::Posix(), load.request.language(), Texts(options.compile_flags()), Texts(options.link_flags()));
  inputs.Add(flags.files, flags.folders);
  const v1::ToolchainPaths& tools = load.request.toolchain();
  for (const std::string& tool : {tools.host_compiler(), tools.nvcc()}) {
    if (!tool.empty()) inputs.Add({tool}, {});
  }
  std::vector<std::string> files = scan.absolute_headers;
  for (const v1::Header& header : scan.headers) {
    files.push_back(JoinPath(scan.roots[header.include_root()], header.path()));
  }
  inputs.Add(files, scan.searched);
}

// Shows what the compilers printed when the module was built, if somebody asked for it and has not seen it yet.
absl::Status RepeatCompilerOutput(const Module& module, const PreparedLoad& load, const LoadCallbacks& callbacks) {
  const bool seen = load.request.verbose() && !module.cache_hit();
  const bool asked = load.request.verbose() || AsksForWarnings(Texts(load.request.options().compile_flags()));
  if (seen || !asked || !callbacks.output) return absl::OkStatus();
  KERNIX_ASSIGN_OR_RETURN(const ModuleTexts texts, module.texts());
  if (!texts.compiler_output.empty()) callbacks.output(load.names.Restore(texts.compiler_output));
  return absl::OkStatus();
}

// What a build and each hit have to say.
absl::Status TellOfBuild(const Module& module, const v1::LoadResult& result, const PreparedLoad& load,
                         const GetEnv& get_env, const LoadCallbacks& callbacks) {
  for (const v1::LoadWarning& warning : result.warning()) {
    Warn(callbacks, get_env, warning.name(), load.names.Restore(warning.text()));
  }
  return RepeatCompilerOutput(module, load, callbacks);
}

// A warning of a build: a hit does not repeat it. Code for a debugger, which is not optimised, has no use for it.
void WarnOfSpills(const Module& module, const LoadOptions& options, const GetEnv& get_env) {
  if (module.cache_hit() || !TraitsOf(module.language()).needs_nvcc || options.debug) return;
  const absl::StatusOr<std::vector<KernelResources>> kernels = KernelsInArtifact(module.artifact());
  if (!kernels.ok()) return;  // Resources() says why
  const std::optional<std::string> warning = SpillWarning(module.name(), *kernels);
  if (warning) Warn(options.callbacks, get_env, warning::kRegisterSpills, *warning);
}

absl::StatusOr<std::shared_ptr<Module>> Run(DaemonClient& daemon, const GetEnv& get_env, const PreparedLoad& load,
                                            const LoadOptions& options, LoadInputs& inputs, OwnHistory& history) {
  KERNIX_RETURN_IF_ERROR(WrongTools(load.no_tools));
  const LoadCallbacks& callbacks = options.callbacks;
  const BlobProvider blobs = [&](const Digest& digest) { return load.headers.Read(Env::Posix(), digest); };
  KERNIX_ASSIGN_OR_RETURN(
      const v1::LoadResult result,
      daemon.SendLoad(load.request, blobs, history.WithWarmUp(load.request, WithPaths(callbacks, load.names))));
  inputs.Add(Texts(result.other_file()), {});
  KERNIX_ASSIGN_OR_RETURN(std::string path, daemon.LocalArtifact(result));
  KERNIX_ASSIGN_OR_RETURN(
      std::shared_ptr<Module> module,
      MakeModule({.name = load.request.name(), .language = FromWire(load.request.language()), .path = std::move(path)},
                 result, options, daemon.options()));
  KERNIX_RETURN_IF_ERROR(TellOfBuild(*module, result, load, get_env, callbacks));
  const std::string failure = history.Note(load, module->key());
  if (!failure.empty() && IsFirstWarning(failure)) Warn(callbacks, get_env, warning::kHistoryNotKept, failure);
  return module;
}

std::vector<std::string> BundlesOf(const LoadOptions& options, const GetEnv& get_env, const std::string& name,
                                   const std::vector<Source>& sources) {
  const std::string of_environment = get_env(kBundlesVariable).value_or("");
  if (of_environment == kNoBundles) return {};
  std::vector<std::string> bundles;
  for (const std::string& path : options.bundles) bundles.push_back(AbsolutePath(path));
  for (const absl::string_view path : absl::StrSplit(of_environment, ':', absl::SkipEmpty())) {
    bundles.push_back(AbsolutePath(ToStd(path)));
  }
  if (sources.empty() || sources[0].path.empty()) return bundles;
  const std::optional<std::string> beside = BundleBeside(Env::Posix(), AbsolutePath(sources[0].path), name);
  if (beside) bundles.push_back(*beside);
  return bundles;
}

// What the bundles have for this load.
absl::StatusOr<BundleAnswer> LookIntoBundles(const PreparedLoad& load, const std::vector<std::string>& bundles,
                                             const std::vector<std::string>& variables, Question question) {
  if (bundles.empty() || load.request.force_rebuild()) return BundleAnswer();
  KERNIX_ASSIGN_OR_RETURN(const TrustedKeys keys, BundleKeysOf(variables));
  const unsigned driver =
      load.request.options().architectures_of_gpu() ? CudaDriverVersion(Env::Posix(), GpuSystem()) : 0;
  return AskBundles(Env::Posix(), bundles, keys, RecordOf(load), driver, question);
}

absl::StatusOr<std::shared_ptr<Module>> FromBundle(const DaemonClient& daemon, const GetEnv& get_env,
                                                   const PreparedLoad& load, const BundleAnswer& bundled,
                                                   const LoadOptions& options) {
  const v1::LoadResult& result = *bundled.result;
  absl::StatusOr<std::shared_ptr<Module>> module = MakeModule({.name = load.request.name(),
                                                               .language = FromWire(load.request.language()),
                                                               .path = result.artifact_path(),
                                                               .origin = Origin::kBundle},
                                                              result, options, daemon.options());
  if (!module.ok()) {
    v1::ErrorDetail detail = GetErrorDetail(module.status());
    detail.set_message(StrCat(detail.message(), "\nThe kernel is from the bundle ", bundled.bundle,
                              ". With KERNIX_BUNDLES=none, kernixd compiles it for this machine."));
    return MakeError(std::move(detail));
  }
  KERNIX_RETURN_IF_ERROR(TellOfBuild(**module, result, load, get_env, options.callbacks));
  return module;
}

// `status`, with what the bundles have instead, if that is why the load needs what it has not got.
absl::Status WithBundleMiss(const absl::Status& status, const std::string& miss) {
  const ErrorKind kind = KindOf(status);
  const bool is_missing =
      kind == v1::ErrorDetail::NOT_CACHED || kind == v1::ErrorDetail::UNREACHABLE || kind == v1::ErrorDetail::TOOLCHAIN;
  if (miss.empty() || !is_missing) return status;
  v1::ErrorDetail detail = GetErrorDetail(status);
  detail.set_message(StrCat(detail.message(), "\nBesides, ", miss, "."));
  return MakeError(std::move(detail));
}

// Whether the user should hear of a miss though the load goes on. A bundle of this module's name was made for it, and
// one that the load itself names should have it; KERNIX_BUNDLES may list bundles of other programs. While a package has
// no bundle, as in a clone, its loads compile in silence.
bool IsNotable(const BundleAnswer& bundled, const std::vector<std::string>& named) {
  const auto was_asked = [&](const std::string& path) {
    return std::find(bundled.asked.begin(), bundled.asked.end(), AbsolutePath(path)) != bundled.asked.end();
  };
  return !bundled.miss.empty() && (bundled.has_name || std::any_of(named.begin(), named.end(), was_asked));
}

// If a load cannot be recorded, it goes on.
void Record(const PreparedLoad& load, const Module& module, const GetEnv& get_env, const LoadCallbacks& callbacks) {
  const std::optional<std::string> folder = get_env(kRecordVariable);
  if (!folder) return;
  const absl::Status noted = NoteLoad(Env::Posix(), *folder, load, module.key());
  if (noted.ok()) return;
  const std::string text = StrCat("loads are not recorded: ", ToStd(noted.message()));
  if (IsFirstWarning(text)) Warn(callbacks, text);
}

// Where the clients of this user share their table of headers. Created if missing.
absl::StatusOr<std::string> HeaderFolder(DaemonClient& daemon) {
  KERNIX_ASSIGN_OR_RETURN(std::string folder, daemon.OwnFolder("headers"));
  KERNIX_RETURN_IF_ERROR(EnsureOwnDirectory(Env::Posix(), folder, geteuid()));
  return folder;
}

absl::StatusOr<std::shared_ptr<Module>> LoadOnce(DaemonClient& daemon, Language language, const std::string& name,
                                                 const std::vector<Source>& sources, const LoadOptions& options,
                                                 LoadInputs& inputs) {
  if (!options.verbose && !options.force_rebuild) daemon.AnnounceLoad();
  const std::vector<std::string> variables = options.environment ? *options.environment : ProcessVariables();
  const GetEnv get_env = GetEnvOf(variables);
  const LoadSurroundings surroundings{.env = Env::Posix(),
                                      .get_env = get_env,
                                      .site_packages = daemon.options().site_packages,
                                      .header_folder = [&daemon] { return HeaderFolder(daemon); }};
  KERNIX_ASSIGN_OR_RETURN(const PreparedLoad load, PrepareLoad(surroundings, ToWire(language), name, sources, options));
  for (const LoadWarning& warning : load.warnings) Warn(options.callbacks, get_env, warning.name, warning.text);
  for (const auto& texts : {UnknownVariableWarnings(variables), WarningsAboutSwitches(get_env)}) {
    for (const std::string& text : texts) {
      if (IsFirstWarning(text)) Warn(options.callbacks, get_env, warning::kVariableWithoutEffect, text);
    }
  }
  NoteInputs(load, inputs);
  const std::vector<std::string> bundles = BundlesOf(options, get_env, name, sources);
  inputs.Add({}, {bundles.begin(), bundles.end()});
  if (options.callbacks.inputs) options.callbacks.inputs(inputs.Paths());
  KERNIX_ASSIGN_OR_RETURN(BundleAnswer bundled, LookIntoBundles(load, bundles, variables, Question::kKernel));
  OwnHistory history(daemon, variables, get_env, options);
  absl::StatusOr<std::shared_ptr<Module>> module = bundled.result
                                                       ? FromBundle(daemon, get_env, load, bundled, options)
                                                       : Run(daemon, get_env, load, options, inputs, history);
  const bool is_hit = module.ok() && (*module)->cache_hit();  // to say why takes longer, if a bundle is large
  if (!bundled.result && (!is_hit || !options.bundles.empty())) {
    bundled = LookIntoBundles(load, bundles, variables, Question::kWhy).value_or(BundleAnswer());
  }
  if (!module.ok()) {
    const absl::Status status = WithBundleMiss(WithoutTools(module.status(), load), bundled.miss);
    return WithPaths(WithCudaAdvice(load.request, status), load);
  }
  if (IsNotable(bundled, options.bundles)) Warn(options.callbacks, get_env, warning::kNotInBundle, bundled.miss);
  WarnOfSpills(**module, options, get_env);
  Record(load, **module, get_env, options.callbacks);
  return module;
}

// More than two, because the upgrade of a compiler changes many files.
constexpr int kAttempts = 4;

// The artifact was evicted before it could be opened, or a header or tool changed during the load.
bool IsOutdated(const absl::Status& status) { return absl::IsNotFound(status) || absl::IsAborted(status); }

absl::Status Evicted(const absl::Status& status) {
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("the compiled kernel was removed from the cache before it could be opened, ", kAttempts,
                          " times (", ToStd(status.message()),
                          "). Either another process purges the cache, or the cache is too small for the kernels in "
                          "use: then raise kernixd's cache_limit_bytes."));
}

absl::StatusOr<Source> ReadSource(const std::string& path) {
  absl::StatusOr<std::string> text = Env::Posix().ReadFile(path);
  if (!text.ok()) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("cannot read the source file: ", ToStd(text.status().message())));
  }
  return Source{.text = *std::move(text), .label = "", .path = path};
}

std::vector<Source> InlineSources(const std::vector<std::string>& texts) {
  std::vector<Source> sources;
  sources.reserve(texts.size());
  for (const std::string& text : texts) sources.push_back({.text = text, .label = "", .path = ""});
  return sources;
}

absl::StatusOr<std::shared_ptr<Module>> LoadFile(Client& client, Language language, const std::string& path,
                                                 const LoadOptions& options) {
  return LoadFiles(client, language, std::filesystem::path(path).stem().string(), {path}, options);
}

absl::StatusOr<std::shared_ptr<Module>> LoadDir(Client& client, Language language, const std::string& directory,
                                                const LoadOptions& options,
                                                const std::vector<std::string>& file_patterns) {
  const std::string folder = AbsolutePath(directory);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> paths, MatchingFiles(folder, file_patterns));
  return LoadFiles(client, language, Basename(folder), paths, options);
}

}  // namespace

LoadedModule FindLoaded(const Client& client, Language language, const std::string& name,
                        const std::vector<Source>& sources, const LoadOptions& options) {
  if (options.verbose || options.force_rebuild || options.begin_anew || options.callbacks.inputs) return {};
  return PerProcess<LoadMemo>::Get().Find(MemoKey(client.options(), language, name, options), sources);
}

absl::StatusOr<LoadedModule> LoadAnew(Client& client, Language language, const std::string& name,
                                      const std::vector<Source>& sources, const LoadOptions& options) {
  auto* daemon = dynamic_cast<DaemonClient*>(&client);
  if (daemon == nullptr) return absl::InvalidArgumentError("the client was not made by kernix::Client::Create()");
  std::string key = MemoKey(client.options(), language, name, options);
  LoadInputs inputs(Env::Posix());
  absl::StatusOr<std::shared_ptr<Module>> module = LoadOnce(*daemon, language, name, sources, options, inputs);
  for (int attempts = 1; attempts < kAttempts && IsOutdated(module.status()); ++attempts) {
    module = LoadOnce(*daemon, language, name, sources, options, inputs);
  }
  if (absl::IsNotFound(module.status())) return Evicted(module.status());
  if (!module.ok()) return module.status();
  std::optional<std::vector<WatchedFile>> files = inputs.Look();
  if (!files) return LoadedModule{.module = *std::move(module)};
  return PerProcess<LoadMemo>::Get().Remember(std::move(key), sources, *std::move(module), *std::move(files));
}

absl::StatusOr<std::shared_ptr<Module>> Load(Client& client, Language language, const std::string& name,
                                             const std::vector<Source>& sources, const LoadOptions& options) {
  LoadedModule loaded = FindLoaded(client, language, name, sources, options);
  if (loaded.module == nullptr) {
    KERNIX_ASSIGN_OR_RETURN(loaded, LoadAnew(client, language, name, sources, options));
  }
  return std::move(loaded.module);
}

absl::StatusOr<std::shared_ptr<Module>> LoadFiles(Client& client, Language language, const std::string& name,
                                                  const std::vector<std::string>& paths, const LoadOptions& options) {
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    KERNIX_ASSIGN_OR_RETURN(Source source, ReadSource(path));
    sources.push_back(std::move(source));
  }
  return Load(client, language, name, sources, options);
}

absl::StatusOr<std::shared_ptr<Module>> LoadCudaDir(Client& client, const std::string& directory,
                                                    const LoadOptions& options,
                                                    const std::vector<std::string>& file_patterns) {
  return LoadDir(client, Language::kCuda, directory, options, file_patterns);
}

absl::StatusOr<std::shared_ptr<Module>> LoadCppDir(Client& client, const std::string& directory,
                                                   const LoadOptions& options,
                                                   const std::vector<std::string>& file_patterns) {
  return LoadDir(client, Language::kCpp, directory, options, file_patterns);
}

absl::StatusOr<std::shared_ptr<Module>> LoadCppInline(Client& client, const std::string& name,
                                                      const std::vector<std::string>& sources,
                                                      const LoadOptions& options) {
  return Load(client, Language::kCpp, name, InlineSources(sources), options);
}

absl::StatusOr<std::shared_ptr<Module>> LoadCppFile(Client& client, const std::string& path,
                                                    const LoadOptions& options) {
  return LoadFile(client, Language::kCpp, path, options);
}

absl::StatusOr<std::shared_ptr<Module>> LoadCudaInline(Client& client, const std::string& name,
                                                       const std::vector<std::string>& sources,
                                                       const LoadOptions& options) {
  return Load(client, Language::kCuda, name, InlineSources(sources), options);
}

absl::StatusOr<std::shared_ptr<Module>> LoadCudaFile(Client& client, const std::string& path,
                                                     const LoadOptions& options) {
  return LoadFile(client, Language::kCuda, path, options);
}

}  // namespace kernix
