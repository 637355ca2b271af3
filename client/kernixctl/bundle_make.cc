// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl bundle make`: compiles kernels through the daemon, and puts them into a bundle.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "client/bundle/bundle.h"
#include "client/bundle/bundle_search.h"
#include "client/kernixctl/batch.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/compile_module.h"
#include "client/kernixctl/manifest.h"
#include "client/kernixctl/progress_line.h"
#include "client/load/compile_flags.h"
#include "client/load/kernel_resources.h"
#include "client/load/module.h"
#include "client/load/recording.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/flag_table.h"
#include "common/flags/languages.h"
#include "common/os/env.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Compiles kernels through the daemon, and writes them into a bundle: a folder from which programs load them on machines
without a compiler and without kernixd. PATH is a source file, a folder of them (as for `kernixctl build`), or a
manifest of `kernixctl record`, which has each load of a program with its options.

A load finds its kernel in a bundle only if it is the same: sources, headers, flags and functions. The architectures
are the bundle's: --arch holds for each load that names none itself. The newest architecture gets PTX, too, which the
drivers of later GPUs compile; an architecture such as sm_90a has none for other GPUs.

Exit codes: as for `kernixctl build`.

Examples:
  kernixctl record -o kernels.manifest -- python -c 'import mypackage; mypackage.warm_up()'
  kernixctl bundle make kernels.manifest --arch 8.0,9.0,12.0 -o mypackage/kernels.kernix
  kernixctl bundle make kernels --arch 9.0 --sign-with key.pem -o kernels.kernix)";

struct MakeFlags {
  CompileFlags compile;
  std::string output;
  std::string key_file;
  uint32_t at_once = kLoadsAtOnce;
};

absl::Status Refuse(std::string_view name, std::string_view why) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("\"", name, "\" cannot be in a bundle: ", why));
}

std::vector<std::string> TextsOf(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// Whether it is only named in the kernel, and found when the kernel is opened.
bool IsShared(std::string_view library) { return absl::StrContains(ToAbsl(library), ".so"); }

// Whether the linker takes a shared library instead of this archive.
bool HasShared(const std::vector<std::string>& files, std::string_view archive) {
  constexpr std::string_view kSuffix = ".a";
  if (!archive.ends_with(kSuffix)) return false;
  const std::string shared = StrCat(archive.substr(0, archive.size() - kSuffix.size()), ".so");
  return std::find(files.begin(), files.end(), shared) != files.end();
}

// Refuses what another machine could not check, or run.
absl::Status CheckPortable(const v1::RecordedLoad& load, const v1::LoadResult& result) {
  const std::string& name = load.request().name();
  const v1::Options& options = load.request().options();
  const v1::Language language = load.request().language();
  const std::vector<std::string> compile = TextsOf(options.compile_flags());
  const std::vector<std::string> link = TextsOf(options.link_flags());
  for (const flags::Flag& flag : HostFlags(language, compile, link)) {
    if (flag.meaning() != flags::Meaning::kProcessor || flag.value != "native") continue;
    return Refuse(name, StrCat("the flag ", flag.text(), " makes code for this machine's processor; name one instead"));
  }
  const FlagFiles named = FindFlagFiles(Env::Posix(), language, compile, link);
  for (const std::string& file : named.files) {
    if (IsShared(file) || HasShared(named.files, file)) continue;
    return Refuse(name, StrCat("a flag names ", file,
                               ", which becomes a part of the kernel, and a load cannot tell "
                               "whether it has changed"));
  }
  std::vector<std::string> files(load.absolute_header().begin(), load.absolute_header().end());
  files.insert(files.end(), result.other_file().begin(), result.other_file().end());
  if (files.empty()) return absl::OkStatus();
  return Refuse(name, StrCat("it reads ", files[0],
                             " by its absolute path, and a load cannot tell whether another "
                             "machine's file is the same"));
}

class BundleMaker {
 public:
  BundleMaker(DaemonClient& daemon, const MakeFlags& flags, std::optional<SigningKey> signs_with)
      : daemon_(daemon), flags_(flags), signs_with_(std::move(signs_with)) {}

  // Compiles `sources`, each alone, and the loads of `recording`, and writes the bundle.
  int Run(const std::vector<std::string>& sources, const Recording& recording) {
    std::vector<BatchItem> items;
    for (const std::string& file : sources) {
      items.push_back({file, [this, &file](const LoadCallbacks& callbacks) { return AddFile(file, callbacks); }});
    }
    for (const v1::RecordedLoad& load : recording.loads) {
      items.push_back({load.request().name(), [this, &recording, &load](const LoadCallbacks& callbacks) {
                         return Add(recording, load, callbacks);
                       }});
    }
    const int code = RunBatch(items, flags_.at_once, flags_.compile.load.verbose);
    if (code != kOk) return code;
    const MutexLock lock(mutex_);
    const absl::Status written = WriteBundle(Env::Posix(), AbsolutePath(flags_.output), std::move(files_));
    return written.ok() ? kOk : Fail(written);
  }

 private:
  absl::StatusOr<BatchResult> AddFile(const std::string& file, const LoadCallbacks& callbacks) {
    KERNIX_ASSIGN_OR_RETURN(const RecordingFolder folder, RecordingFolder::Make());
    const std::string no_bundles = StrCat(kBundlesVariable, "=", kNoBundles);  // the one to replace may be damaged
    KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<Module> module,
                            LoadAlone(daemon_, file, flags_.compile, folder.Environment(no_bundles), callbacks));
    KERNIX_ASSIGN_OR_RETURN(const Recording recording, folder.Read());
    if (recording.loads.empty()) return absl::InternalError(StrCat("the load of ", file, " was not recorded"));
    KERNIX_ASSIGN_OR_RETURN(BatchResult added, Add(recording, recording.loads.front(), callbacks));
    added.counts_as = InWords(module->origin());  // the load of the recording has only found it again
    return added;
  }

  absl::StatusOr<BatchResult> Add(const Recording& recording, v1::RecordedLoad load, const LoadCallbacks& callbacks) {
    SetArchitectures(load);
    LoadOptions options = flags_.compile.load;
    options.callbacks = callbacks;
    if (!flags_.compile.policy.empty()) options.policy = LoadOptionsFrom(flags_.compile).policy;
    KERNIX_ASSIGN_OR_RETURN(const v1::LoadResult result, LoadRecorded(daemon_, recording, load, options));
    KERNIX_RETURN_IF_ERROR(CheckPortable(load, result));
    KERNIX_ASSIGN_OR_RETURN(const std::string path, daemon_.LocalArtifact(result));
    KERNIX_ASSIGN_OR_RETURN(std::string artifact, Env::Posix().ReadFile(path));
    BundledKernel kernel{.load = std::move(load), .result = result, .targets = {}};
    KERNIX_ASSIGN_OR_RETURN(kernel.targets, TargetsInArtifact(artifact));
    if (callbacks.warning) WarnOfLaterGpus(kernel, callbacks);
    const std::string line = StrCat(kernel.load.request().name(), " ", DigestOf(artifact).Hex());
    const MutexLock lock(mutex_);
    AddKernel(kernel, std::move(artifact), signs_with_ ? &*signs_with_ : nullptr, files_);
    return BatchResult{line, InWords(OriginOf(result))};
  }

  void SetArchitectures(v1::RecordedLoad& load) const {
    const std::string& asked = flags_.compile.load.compute_capability;
    if (asked.empty() || asked == "native" || !load.architecture_of_machine()) return;
    load.set_architecture_of_machine(false);
    v1::Options& options = *load.mutable_request()->mutable_options();
    options.clear_architectures();
    options.clear_architectures_of_gpu();
    for (const absl::string_view one : absl::StrSplit(asked, absl::ByAnyChar(",; "), absl::SkipEmpty())) {
      options.add_architectures(std::string(one));
    }
  }

  static void WarnOfLaterGpus(const BundledKernel& kernel, const LoadCallbacks& callbacks) {
    constexpr char kLater[] = "sm_990";
    if (kernel.targets.machine_code.empty() || RunsOn(kernel.targets, kLater)) return;
    callbacks.warning(StrCat("\"", kernel.load.request().name(),
                             "\" has no PTX for GPUs that come later: its newest architecture has a letter"));
  }

  DaemonClient& daemon_;
  const MakeFlags& flags_;
  const std::optional<SigningKey> signs_with_;
  Mutex mutex_;
  BundleFiles files_ ABSL_GUARDED_BY(mutex_);
};

struct Kernels {
  std::vector<std::string> sources;
  Recording recording;
};

absl::StatusOr<Kernels> KernelsOf(const std::vector<std::string>& paths) {
  std::vector<std::string> others;
  Kernels kernels;
  for (const std::string& path : paths) {
    const absl::StatusOr<FileInfo> info = Env::Posix().Stat(AbsolutePath(path));
    const bool is_manifest =
        info.ok() && info->type == FileType::kRegular && LanguageOfFile(path) == v1::LANGUAGE_UNSPECIFIED;
    if (!is_manifest) {
      others.push_back(path);
      continue;
    }
    KERNIX_ASSIGN_OR_RETURN(Recording recording, ReadManifest(path));
    kernels.recording.texts.merge(recording.texts);
    std::move(recording.loads.begin(), recording.loads.end(), std::back_inserter(kernels.recording.loads));
  }
  KERNIX_ASSIGN_OR_RETURN(kernels.sources, SourcesBelow(others));
  return kernels;
}

absl::Status NoKernels() {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   "there is nothing for a bundle: the program that was recorded has loaded no kernel");
}

int RunMake(const ClientOptions& options, const MakeFlags& flags) {
  std::optional<SigningKey> key;
  if (!flags.key_file.empty()) {
    absl::StatusOr<SigningKey> read = SigningKey::Read(Env::Posix(), AbsolutePath(flags.key_file));
    if (!read.ok()) return Fail(read.status());
    key = *std::move(read);
  }
  const absl::StatusOr<Kernels> kernels = KernelsOf(flags.compile.files);
  if (!kernels.ok()) return Fail(kernels.status());
  if (kernels->sources.empty() && kernels->recording.loads.empty()) return Fail(NoKernels());
  ClientOptions with_packages = options;
  with_packages.site_packages = flags.compile.site_packages;
  CatchInterrupt();
  return WithClient(with_packages, [&](DaemonClient& daemon) {
    return BundleMaker(daemon, flags, key).Run(kernels->sources, kernels->recording);
  });
}

std::vector<Option> MakeOptions(MakeFlags& flags) {
  std::vector<Option> options = {
      {"path",
       &flags.compile.files,
       "Source files, folders of them, manifests",
       {.required = true, .names = Names::kFiles}},
      {"-o,--output", &flags.output, "Write the bundle to this folder", {.required = true, .names = Names::kFolders}},
      {"--sign-with",
       &flags.key_file,
       "Sign each kernel with this Ed25519 key: see KERNIX_BUNDLE_KEYS",
       {.names = Names::kFiles}},
      AtOnce(flags.at_once),
  };
  for (Option& option : OptionsOfEachModule(flags.compile)) {
    if (option.spelling != "--json" && option.spelling != "--force") options.push_back(std::move(option));
  }
  return options;
}

}  // namespace

Command BundleMakeCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<MakeFlags>();
  return {.name = "make",
          .summary = "Compile kernels into a bundle",
          .details = kDetails,
          .options = MakeOptions(*flags),
          .run = [&options, flags] { return RunMake(options, *flags); }};
}

}  // namespace kernix::ctl
