// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/bundle_search.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/bundle/bundle.h"
#include "client/connection/endpoint.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr char kFolderSuffix[] = ".kernix";

// Whether this GPU's driver is older than the kernel's code.
bool NeedsNewerDriver(const GpuTargets& targets, const v1::Options& asked, unsigned driver) {
  return driver != 0 && asked.architectures_of_gpu() && DriverFor(targets, asked.architectures(0)) > driver;
}

// How well the kernel does what is asked for; 0: not at all.
int Fit(const BundledKernel& kernel, const v1::Options& asked, unsigned driver) {
  const bool has_gpu_code = !kernel.targets.machine_code.empty() || !kernel.targets.ptx.empty();
  if (asked.architectures().empty() || !has_gpu_code) return 1;
  if (NeedsNewerDriver(kernel.targets, asked, driver)) return 0;
  if (asked.architectures_of_gpu()) return FitFor(kernel.targets, asked.architectures(0));
  const v1::Options& made = kernel.load.request().options();
  const bool is_same = std::equal(made.architectures().begin(), made.architectures().end(),
                                  asked.architectures().begin(), asked.architectures().end());  // "all-major"
  return is_same || HasEach(kernel.targets, {asked.architectures().begin(), asked.architectures().end()}) ? 1 : 0;
}

std::string Listed(const std::vector<std::string>& texts) {
  constexpr size_t kMost = 5;
  if (texts.size() <= kMost) return absl::StrJoin(texts, ", ");
  return StrCat(absl::StrJoin(texts.begin(), texts.begin() + kMost, ", "), " and ", texts.size() - kMost, " more");
}

std::string CudaVersion(unsigned version) { return StrCat(version / 1000, ".", version % 1000 / 10); }

std::string OtherTargets(const Bundle& bundle, const std::vector<BundledKernel>& kernels, const v1::LoadRequest& asked,
                         unsigned driver) {
  std::vector<std::string> targets;
  for (const BundledKernel& kernel : kernels) {
    const GpuTargets& of_kernel = kernel.targets;
    if (NeedsNewerDriver(of_kernel, asked.options(), driver)) {
      return StrCat("the bundle ", bundle.path(), " has \"", asked.name(), "\" for drivers of CUDA ",
                    CudaVersion(DriverFor(of_kernel, asked.options().architectures(0))),
                    " or later, and this machine's is of CUDA ", CudaVersion(driver));
    }
    std::vector<std::string> own = of_kernel.machine_code;
    for (const std::string& ptx : of_kernel.ptx) own.push_back(StrCat("PTX of ", ptx));
    targets.push_back(Listed(own));
  }
  std::sort(targets.begin(), targets.end());
  return StrCat("the bundle ", bundle.path(), " has \"", asked.name(), "\" for ", Listed(targets), ", not for ",
                absl::StrJoin(asked.options().architectures(), ", "));
}

// Compares with the kernels of the same name. Empty if there are none.
absl::StatusOr<std::string> OtherInputs(const Bundle& bundle, const TrustedKeys& trusted,
                                        const v1::RecordedLoad& load) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<BundledKernel> all, bundle.All(trusted));
  const std::vector<std::string> fewest = NearestDifferences(load, all);
  if (fewest.empty()) return "";
  return StrCat("the bundle ", bundle.path(), " has \"", load.request().name(),
                "\" from other inputs, which differ in ", Listed(fewest));
}

// Why the bundle does not have the load. Empty if it has nothing of this name.
absl::StatusOr<std::string> WhyNot(const Bundle& bundle, const TrustedKeys& trusted, const v1::RecordedLoad& load,
                                   const std::vector<BundledKernel>& kernels, unsigned driver) {
  if (!kernels.empty()) return OtherTargets(bundle, kernels, load.request(), driver);
  std::vector<BundledKernel> of_anybody;
  if (!trusted.empty()) {
    KERNIX_ASSIGN_OR_RETURN(of_anybody, bundle.Find(BundleKey(load), {}));
  }
  if (of_anybody.empty()) return OtherInputs(bundle, trusted, load);
  return StrCat("the bundle ", bundle.path(), " has \"", load.request().name(), "\", but no key of ",
                kBundleKeysVariable, " has signed it");
}

// The kernel that fits best so far.
struct Best {
  int fit = 0;
  std::optional<Bundle> bundle;
  BundledKernel kernel;
};

}  // namespace

absl::StatusOr<TrustedKeys> BundleKeysOf(const std::vector<std::string>& variables) {
  TrustedKeys keys;
  const std::string name = StrCat(kBundleKeysVariable, "=");
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const std::string& variable) { return variable.starts_with(name); });
  if (found == variables.end()) return keys;
  for (const absl::string_view text : absl::StrSplit(found->substr(name.size()), ',', absl::SkipWhitespace())) {
    const absl::Status added = keys.Add(ToStd(absl::StripAsciiWhitespace(text)));
    if (added.ok()) continue;
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat(kBundleKeysVariable, ": ", ToStd(added.message())));
  }
  if (!keys.empty()) return keys;
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat(kBundleKeysVariable, " holds no key: unset it, or set one"));
}

std::vector<std::string> NearestDifferences(const v1::RecordedLoad& load, const std::vector<BundledKernel>& kernels) {
  std::vector<std::string> fewest;
  for (const BundledKernel& kernel : kernels) {
    if (kernel.load.request().name() != load.request().name()) continue;
    std::vector<std::string> differences = DifferencesOf(load, kernel.load);
    if (fewest.empty() || differences.size() < fewest.size()) fewest = std::move(differences);
  }
  return fewest;
}

std::optional<std::string> BundleBeside(Env& env, const std::string& source, const std::string& name) {
  std::string path = JoinPath(Dirname(source), StrCat(name, kFolderSuffix));
  const absl::StatusOr<FileInfo> of_source = env.Stat(source, /*follow=*/false);
  const absl::StatusOr<FileInfo> entry = env.Stat(path, /*follow=*/false);  // may be a link
  const absl::StatusOr<FileInfo> bundle = env.Stat(path);
  constexpr mode_t kWritableByAll = 0002;
  if (!bundle.ok() || bundle->type != FileType::kDirectory || (bundle->mode & kWritableByAll) != 0) return std::nullopt;
  for (const auto* owned : {&entry, &bundle}) {
    const bool is_trusted =
        owned->ok() && (IsTrustedUser((*owned)->uid, geteuid()) || (of_source.ok() && of_source->uid == (*owned)->uid));
    if (!is_trusted) return std::nullopt;
  }
  // Nobody has named it: what is no bundle, or not for this user, is none. One of a newer kernix is meant.
  const absl::Status opened = Bundle::Open(env, path).status();
  return opened.ok() || absl::IsUnimplemented(opened) ? std::optional(std::move(path)) : std::nullopt;
}

namespace {

absl::StatusOr<BundleAnswer> AskOnce(Env& env, const std::vector<std::string>& bundles, const TrustedKeys& trusted,
                                     const v1::RecordedLoad& load, unsigned driver, Question question) {
  Best best;
  BundleAnswer answer;
  std::vector<std::string> without_name;
  for (const std::string& path : bundles) {
    const absl::StatusOr<Bundle> bundle = Bundle::Open(env, path);
    if (absl::IsNotFound(bundle.status())) {
      without_name.push_back(StrCat("there is no bundle ", path));
      continue;
    }
    if (absl::IsUnimplemented(bundle.status())) {  // of a newer kernix
      answer.miss = std::string(bundle.status().message());
      answer.has_name = true;
      continue;
    }
    if (!bundle.ok()) return bundle.status();
    answer.asked.push_back(path);
    KERNIX_ASSIGN_OR_RETURN(std::vector<BundledKernel> kernels, bundle->Find(BundleKey(load), trusted));
    for (BundledKernel& kernel : kernels) {
      const int fit = Fit(kernel, load.request().options(), driver);
      if (fit > best.fit) best = {fit, *bundle, kernel};
    }
    if (best.fit > 0 || answer.has_name || question == Question::kKernel) continue;
    KERNIX_ASSIGN_OR_RETURN(answer.miss, WhyNot(*bundle, trusted, load, kernels, driver));
    answer.has_name = !answer.miss.empty();
    without_name.push_back(StrCat("the bundle ", path, " has nothing named \"", load.request().name(), "\""));
  }
  if (!best.bundle) {
    if (!answer.has_name) answer.miss = absl::StrJoin(without_name, "; ");
    return answer;
  }
  // A signature is worth nothing if it is not that of the content.
  const Bundle::Compare compare = trusted.empty() ? Bundle::Compare::kSize : Bundle::Compare::kContent;
  BundleAnswer found{.result = std::move(best.kernel.result), .bundle = best.bundle->path()};
  found.result->set_cache_hit(true);
  KERNIX_ASSIGN_OR_RETURN(const std::string artifact, best.bundle->Artifact(*found.result, compare));
  found.result->set_artifact_path(artifact);
  return found;
}

}  // namespace

absl::StatusOr<BundleAnswer> AskBundles(Env& env, const std::vector<std::string>& bundles, const TrustedKeys& trusted,
                                        const v1::RecordedLoad& load, unsigned driver, Question question) {
  const auto once = [&] { return AskOnce(env, bundles, trusted, load, driver, question); };
  absl::StatusOr<BundleAnswer> answer = once();
  return answer.ok() ? answer : once();  // perhaps of a bundle that was replaced, or of a copy that is unpacked again
}

}  // namespace kernix
