// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl bundle` and its commands about bundles that are there: show, verify, merge and diff.
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/bundle/bundle.h"
#include "client/bundle/bundle_search.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/load/kernel_resources.h"
#include "client/tools/environment.h"
#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/languages.h"
#include "common/os/env.h"

namespace kernix::ctl {
namespace {

absl::StatusOr<Bundle> OpenBundle(const std::string& path) {
  absl::StatusOr<Bundle> bundle = Bundle::Open(Env::Posix(), AbsolutePath(path));
  if (!absl::IsNotFound(bundle.status())) return bundle;
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("there is no bundle ", path));
}

std::vector<std::string> FunctionsOf(const BundledKernel& kernel) {
  std::vector<std::string> names;
  for (const v1::ResolvedFunction& function : kernel.result.function()) names.push_back(function.name());
  return names;
}

int PrintOrFail(const absl::StatusOr<std::string>& text) {
  if (!text.ok()) return Fail(text.status());
  std::cout << *text;
  return kOk;
}

// --- Show

struct ShowFlags {
  std::string bundle;
  bool json = false;
};

// The libraries that the loader looks for when it opens the kernel.
std::vector<std::string> LibrariesOf(const Bundle& bundle, const BundledKernel& kernel) {
  const absl::StatusOr<std::string> path = bundle.Artifact(kernel.result, Bundle::Compare::kSize);
  const std::string content = path.ok() ? Env::Posix().ReadFile(*path).value_or("") : "";
  const absl::StatusOr<ElfImage> image = ElfImage::Parse(content);
  return image.ok() ? image->NeededLibraries().value_or(std::vector<std::string>()) : std::vector<std::string>();
}

std::string Json(const Bundle& bundle, const BundledKernel& kernel) {
  return JsonObject()
      .Text("name", kernel.load.request().name())
      .Text("language", TraitsOf(kernel.load.request().language()).id)
      .Json("machine_code", JsonStrings(kernel.targets.machine_code))
      .Json("ptx", JsonStrings(kernel.targets.ptx))
      .Number("cuda_version", uint64_t{kernel.targets.cuda_version})
      .Json("functions", JsonStrings(FunctionsOf(kernel)))
      .Number("size", kernel.result.artifact_size())
      .Text("key", BundleKey(kernel.load).Hex())
      .Json("needs", JsonOfTexts(kernel.result.required_symbol_versions()))
      .Json("libraries", JsonStrings(LibrariesOf(bundle, kernel)))
      .Str();
}

std::string TargetsText(const GpuTargets& targets) {
  std::vector<std::string> texts = targets.machine_code;
  for (const std::string& ptx : targets.ptx) texts.push_back(StrCat("PTX ", ptx));
  return texts.empty() ? "-" : absl::StrJoin(texts, " ");
}

absl::StatusOr<std::string> Show(const ShowFlags& flags) {
  KERNIX_ASSIGN_OR_RETURN(const Bundle bundle, OpenBundle(flags.bundle));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<BundledKernel> kernels, bundle.All({}));
  if (flags.json) return JsonOfAll(kernels, [&](const BundledKernel& kernel) { return Json(bundle, kernel); }) + "\n";
  std::vector<std::vector<std::string>> rows = {{"NAME", "LANGUAGE", "SIZE", "GPUS", "FUNCTIONS"}};
  for (const BundledKernel& kernel : kernels) {
    rows.push_back({kernel.load.request().name(), std::string(TraitsOf(kernel.load.request().language()).id),
                    FormatBytes(kernel.result.artifact_size()), TargetsText(kernel.targets),
                    absl::StrJoin(FunctionsOf(kernel), " ")});
  }
  return FormatTable(std::move(rows));
}

Command ShowCommand() {
  const auto flags = std::make_shared<ShowFlags>();
  return {.name = "show",
          .summary = "List the kernels of a bundle",
          .details = "Examples:\n  kernixctl bundle show kernels.kernix --json",
          .options = {{"bundle", &flags->bundle, "The bundle", {.required = true, .names = Names::kFolders}},
                      {"--json", &flags->json, "Print a JSON array"}},
          .run = [flags] { return PrintOrFail(Show(*flags)); }};
}

// --- Verify

struct VerifyFlags {
  std::string bundle;
  std::vector<std::string> keys;
};

absl::Status Damaged(const std::string& what) { return MakeError(v1::ErrorDetail::LOAD, what); }

absl::StatusOr<TrustedKeys> KeysOf(const VerifyFlags& flags) {
  if (flags.keys.empty()) return BundleKeysOf(ProcessVariables());
  TrustedKeys keys;
  for (const std::string& text : flags.keys) KERNIX_RETURN_IF_ERROR(keys.Add(text));
  return keys;
}

absl::Status VerifyArtifact(const Bundle& bundle, const BundledKernel& kernel) {
  KERNIX_ASSIGN_OR_RETURN(const std::string path, bundle.Artifact(kernel.result, Bundle::Compare::kContent));
  KERNIX_ASSIGN_OR_RETURN(const std::string content, Env::Posix().ReadFile(path));
  const absl::StatusOr<GpuTargets> targets = TargetsInArtifact(content);
  if (!targets.ok()) return Damaged(StrCat(path, ": ", ToStd(targets.status().message())));
  if (*targets == kernel.targets) return absl::OkStatus();
  return Damaged(StrCat(path, " has code for other GPUs than the bundle says"));
}

// Finds artifacts whose statements are lost.
absl::Status CheckEachIsNamed(const Bundle& bundle, const std::vector<BundledKernel>& kernels) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, bundle.Names());
  std::set<std::string> artifacts(names.begin(), names.end());
  std::erase_if(artifacts, [](const std::string& name) { return !name.ends_with(".so"); });
  for (const BundledKernel& kernel : kernels) {
    KERNIX_ASSIGN_OR_RETURN(const std::string path, bundle.Artifact(kernel.result, Bundle::Compare::kSize));
    artifacts.erase(Basename(path));
  }
  if (artifacts.empty()) return absl::OkStatus();
  return Damaged(StrCat(bundle.path(), " has lost what it says about ", *artifacts.begin(),
                        ": copy it again from a whole one, or make it again"));
}

// Of several statements about a kernel, one that is signed is enough.
size_t CountKernels(const std::vector<BundledKernel>& statements) {
  std::set<std::pair<Digest, std::string>> kernels;
  for (const BundledKernel& one : statements) kernels.emplace(BundleKey(one.load), one.result.artifact_digest());
  return kernels.size();
}

absl::StatusOr<std::string> Verify(const VerifyFlags& flags) {
  KERNIX_ASSIGN_OR_RETURN(const TrustedKeys keys, KeysOf(flags));
  KERNIX_ASSIGN_OR_RETURN(const Bundle bundle, OpenBundle(flags.bundle));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<BundledKernel> all, bundle.All({}));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<BundledKernel> believed, bundle.All(keys));
  const size_t count = CountKernels(all);
  if (CountKernels(believed) < count) {
    return Damaged(StrCat(count - CountKernels(believed), " of ", count, " kernels of ", bundle.path(),
                          " have no signature of a trusted key"));
  }
  for (const BundledKernel& kernel : all) KERNIX_RETURN_IF_ERROR(VerifyArtifact(bundle, kernel));
  KERNIX_RETURN_IF_ERROR(CheckEachIsNamed(bundle, all));
  return StrCat(count, count == 1 ? " kernel" : " kernels", ", whole",
                keys.empty() ? "" : " and signed by a trusted key", "\n");
}

constexpr char kVerifyDetails[] =
    R"(Reads the whole bundle, and compares each artifact with its digest. With --key or $KERNIX_BUNDLE_KEYS, each kernel
must be signed by one of these keys.

Examples:
  kernixctl bundle verify kernels.kernix --key MCowBQYDK2VwAyEA...)";

Command VerifyCommand() {
  const auto flags = std::make_shared<VerifyFlags>();
  return {.name = "verify",
          .summary = "Check that a bundle is whole, and who has signed it",
          .details = kVerifyDetails,
          .options = {{"bundle", &flags->bundle, "The bundle", {.required = true, .names = Names::kFolders}},
                      {"--key", &flags->keys, "A public key, as `openssl pkey -pubout` writes it"}},
          .run = [flags] { return PrintOrFail(Verify(*flags)); }};
}

// --- Merge

struct MergeFlags {
  std::vector<std::string> bundles;
  std::string output;
};

absl::StatusOr<std::string> Merge(const MergeFlags& flags) {
  BundleFiles files;
  for (const std::string& path : flags.bundles) {
    KERNIX_ASSIGN_OR_RETURN(const Bundle bundle, OpenBundle(path));
    KERNIX_ASSIGN_OR_RETURN(const std::vector<BundledKernel> kernels, bundle.All({}));
    for (const BundledKernel& kernel : kernels) {  // nothing damaged goes on
      KERNIX_RETURN_IF_ERROR(bundle.Artifact(kernel.result, Bundle::Compare::kContent).status());
    }
    KERNIX_ASSIGN_OR_RETURN(const BundleFiles others, bundle.Files());
    AddBundle(others, files);
  }
  KERNIX_RETURN_IF_ERROR(WriteBundle(Env::Posix(), AbsolutePath(flags.output), std::move(files)));
  return "";
}

constexpr char kMergeDetails[] =
    R"(Writes a bundle that has the kernels of all. The same kernel for different GPUs may come from different bundles. The
signatures stay.

Examples:
  kernixctl bundle merge ampere.kernix hopper.kernix -o kernels.kernix)";

Command MergeCommand() {
  const auto flags = std::make_shared<MergeFlags>();
  return {.name = "merge",
          .summary = "Make one bundle of several",
          .details = kMergeDetails,
          .options = {{"bundle", &flags->bundles, "The bundles", {.required = true, .names = Names::kFolders}},
                      {"-o,--output",
                       &flags->output,
                       "Write the bundle to this folder",
                       {.required = true, .names = Names::kFolders}}},
          .run = [flags] { return PrintOrFail(Merge(*flags)); }};
}

// --- Diff

struct DiffFlags {
  std::string one;
  std::string other;
};

using ByKey = std::map<Digest, std::vector<const BundledKernel*>>;

ByKey ByKeyOf(const std::vector<BundledKernel>& kernels) {
  ByKey by_key;
  for (const BundledKernel& kernel : kernels) by_key[BundleKey(kernel.load)].push_back(&kernel);
  return by_key;
}

std::set<std::string> ArtifactsOf(const std::vector<const BundledKernel*>& kernels) {
  std::set<std::string> digests;
  for (const BundledKernel* kernel : kernels) digests.insert(kernel->result.artifact_digest());
  return digests;
}

std::string Line(std::string_view sign, const BundledKernel& kernel, const std::string& difference) {
  return Printable(StrCat(sign, " ", kernel.load.request().name(), difference.empty() ? "" : ": ", difference)) + "\n";
}

std::string Differences(const std::vector<BundledKernel>& one, const std::vector<BundledKernel>& other) {
  const ByKey in_one = ByKeyOf(one);
  const ByKey in_other = ByKeyOf(other);
  std::string text;
  for (const auto& [key, kernels] : in_one) {
    const auto same = in_other.find(key);
    if (same == in_other.end()) {
      text += Line("-", *kernels[0], absl::StrJoin(NearestDifferences(kernels[0]->load, other), ", "));
    } else if (ArtifactsOf(kernels) != ArtifactsOf(same->second)) {
      text += Line("~", *kernels[0], "the same inputs, other compilers or GPUs");
    }
  }
  for (const auto& [key, kernels] : in_other) {
    if (!in_one.contains(key))
      text += Line("+", *kernels[0], absl::StrJoin(NearestDifferences(kernels[0]->load, one), ", "));
  }
  return text;
}

absl::StatusOr<std::string> Diff(const DiffFlags& flags) {
  KERNIX_ASSIGN_OR_RETURN(const Bundle one, OpenBundle(flags.one));
  KERNIX_ASSIGN_OR_RETURN(const Bundle other, OpenBundle(flags.other));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<BundledKernel> in_one, one.All({}));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<BundledKernel> in_other, other.All({}));
  return Differences(in_one, in_other);
}

int RunDiff(const DiffFlags& flags) {
  const absl::StatusOr<std::string> text = Diff(flags);
  const int code = PrintOrFail(text);
  return code == kOk && !text->empty() ? kFailure : code;
}

constexpr char kDiffDetails[] =
    R"(Prints a line for each kernel that only the first bundle has (-) or only the second (+), with what differs from the
most similar kernel of its name in the other one, and for each that is compiled otherwise (~).

Exit codes: 0 the bundles have the same kernels, 1 they differ.

Examples:
  kernixctl bundle diff released.kernix kernels.kernix)";

Command DiffCommand() {
  const auto flags = std::make_shared<DiffFlags>();
  return {.name = "diff",
          .summary = "Compare two bundles",
          .details = kDiffDetails,
          .options = {{"one", &flags->one, "A bundle", {.required = true, .names = Names::kFolders}},
                      {"other", &flags->other, "Another one", {.required = true, .names = Names::kFolders}}},
          .run = [flags] { return RunDiff(*flags); }};
}

constexpr char kBundleDetails[] =
    R"(Examples:
  kernixctl bundle make kernels --arch 9.0 -o kernels.kernix
  kernixctl bundle show kernels.kernix)";

}  // namespace

Command BundleCommand(const ClientOptions& options) {
  return {.name = "bundle",
          .summary = "Make and look at bundles: kernels for machines without a compiler",
          .details = kBundleDetails,
          .subcommands = {BundleMakeCommand(options), ShowCommand(), VerifyCommand(), MergeCommand(), DiffCommand()}};
}

}  // namespace kernix::ctl
