// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/bundle_search.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/bundle/bundle.h"
#include "client/bundle/bundle_key.h"
#include "client/connection/unix_socket.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr char kFolderSuffix[] = ".kernix";

bool Serves(const BundledKernel& kernel, const v1::Options& asked) {
  if (asked.architectures().empty()) return true;  // no code for GPUs
  if (asked.architectures_of_gpu()) return RunsOn(kernel.targets, asked.architectures(0));
  return HasEach(kernel.targets, {asked.architectures().begin(), asked.architectures().end()});
}

std::string Listed(const std::vector<std::string>& texts) {
  constexpr size_t kMost = 5;
  if (texts.size() <= kMost) return absl::StrJoin(texts, ", ");
  return StrCat(absl::StrJoin(texts.begin(), texts.begin() + kMost, ", "), " and ", texts.size() - kMost, " more");
}

std::string OtherTargets(const Bundle& bundle, const std::vector<BundledKernel>& kernels,
                         const v1::LoadRequest& asked) {
  std::vector<std::string> targets;
  for (const BundledKernel& kernel : kernels) {
    const GpuTargets& of_kernel = kernel.targets;
    targets.insert(targets.end(), of_kernel.machine_code.begin(), of_kernel.machine_code.end());
    for (const std::string& ptx : of_kernel.ptx) targets.push_back(StrCat("PTX of ", ptx));
  }
  return StrCat("the bundle ", bundle.path(), " has \"", asked.name(), "\" for ", Listed(targets), ", not for ",
                absl::StrJoin(asked.options().architectures(), ", "));
}

// Compares with the kernels of the same name. Empty if there are none.
absl::StatusOr<std::string> OtherInputs(const Bundle& bundle, const TrustedKeys& trusted,
                                        const v1::RecordedLoad& load) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<BundledKernel> all, bundle.All(trusted));
  std::vector<std::string> fewest;
  for (const BundledKernel& kernel : all) {
    if (kernel.load.request().name() != load.request().name()) continue;
    std::vector<std::string> differences = DifferencesOf(load, kernel.load);
    if (fewest.empty() || differences.size() < fewest.size()) fewest = std::move(differences);
  }
  if (fewest.empty()) return "";
  return StrCat("the bundle ", bundle.path(), " has \"", load.request().name(),
                "\" from other inputs, which differ in ", Listed(fewest));
}

// What one bundle has.
absl::StatusOr<BundleAnswer> AskBundle(const Bundle& bundle, const TrustedKeys& trusted, const v1::RecordedLoad& load) {
  BundleAnswer answer;
  KERNIX_ASSIGN_OR_RETURN(const std::vector<BundledKernel> kernels, bundle.Find(BundleKey(load), trusted));
  const auto fitting = std::find_if(kernels.begin(), kernels.end(), [&](const BundledKernel& kernel) {
    return Serves(kernel, load.request().options());
  });
  if (fitting == kernels.end()) {
    if (!kernels.empty()) {
      answer.miss = OtherTargets(bundle, kernels, load.request());
    } else {
      KERNIX_ASSIGN_OR_RETURN(answer.miss, OtherInputs(bundle, trusted, load));
    }
    return answer;
  }
  // A signature is worth nothing if it is not that of the content.
  const Bundle::Compare compare = trusted.empty() ? Bundle::Compare::kSize : Bundle::Compare::kContent;
  answer.result = fitting->result;
  answer.result->set_cache_hit(true);
  answer.bundle = bundle.path();
  KERNIX_ASSIGN_OR_RETURN(*answer.result->mutable_artifact_path(), bundle.Artifact(*fitting, compare));
  return answer;
}

}  // namespace

absl::StatusOr<TrustedKeys> BundleKeysOf(const GetEnv& get_env) {
  TrustedKeys keys;
  const std::string texts = get_env(kBundleKeysVariable).value_or("");
  for (const absl::string_view text : absl::StrSplit(texts, ',', absl::SkipWhitespace())) {
    const absl::Status added = keys.Add(ToStd(absl::StripAsciiWhitespace(text)));
    if (added.ok()) continue;
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat(kBundleKeysVariable, ": ", ToStd(added.message())));
  }
  return keys;
}

std::optional<std::string> BundleBeside(Env& env, const std::string& source, const std::string& name) {
  std::string path = JoinPath(Dirname(source), StrCat(name, kFolderSuffix));
  const absl::StatusOr<FileInfo> bundle = env.Stat(path, /*follow=*/false);
  constexpr mode_t kWritableByAll = 0002;
  if (!bundle.ok() || bundle->type == FileType::kSymlink || (bundle->mode & kWritableByAll) != 0) return std::nullopt;
  const absl::StatusOr<FileInfo> of_source = env.Stat(source, /*follow=*/false);
  const bool is_trusted = IsTrustedUser(bundle->uid, geteuid()) || (of_source.ok() && of_source->uid == bundle->uid);
  return is_trusted ? std::optional(std::move(path)) : std::nullopt;
}

absl::StatusOr<BundleAnswer> AskBundles(Env& env, const std::vector<std::string>& bundles, const TrustedKeys& trusted,
                                        const v1::RecordedLoad& load) {
  BundleAnswer last;
  for (const std::string& path : bundles) {
    const absl::StatusOr<Bundle> bundle = Bundle::Open(env, path);
    if (absl::IsNotFound(bundle.status())) continue;
    if (!bundle.ok()) return bundle.status();
    KERNIX_ASSIGN_OR_RETURN(BundleAnswer answer, AskBundle(*bundle, trusted, load));
    if (answer.result) return answer;
    if (last.miss.empty()) last = std::move(answer);
  }
  return last;
}

}  // namespace kernix
