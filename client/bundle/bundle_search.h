// SPDX-License-Identifier: Apache-2.0
//
// Looks for a load's kernel in bundles.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bundle/bundle.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "common/wire/statement.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// A list of bundles, separated by ':'.
inline constexpr char kBundlesVariable[] = "KERNIX_BUNDLES";
// As its value: loads ask no bundle, not even those that the program names.
inline constexpr char kNoBundles[] = "none";
// Public keys, separated by ',', of which one must have signed a kernel.
inline constexpr char kBundleKeysVariable[] = "KERNIX_BUNDLE_KEYS";

// The keys of an environment ("NAME=value"). INVALID_REQUEST names what is no key; also if the variable is set, but
// empty: that should not mean trust in everybody.
absl::StatusOr<TrustedKeys> BundleKeysOf(const std::vector<std::string>& variables);

// The bundle beside a source file, "kernels/NAME.kernix" for a module NAME of kernels/k.cu; nullopt if there is none.
// In a folder where everybody may make files, a stranger's bundle must not count: it (and a link to it) does only if it
// belongs to the source's owner, to this user or to root.
std::optional<std::string> BundleBeside(Env& env, const std::string& source, const std::string& name);

// What a load differs in from the most similar kernel of its module's name. Empty if there is none of that name.
std::vector<std::string> NearestDifferences(const v1::RecordedLoad& load, const std::vector<BundledKernel>& kernels);

struct BundleAnswer {
  std::optional<v1::LoadResult> result;  // with the path of the artifact
  std::string bundle = {};               // that it is from
  std::string miss = {};                 // for kWhy: why no bundle has the kernel, for people; empty if none was asked
  bool has_name = false;                 // whether `miss` is about a kernel of this module's name
  std::vector<std::string> asked = {};   // the bundles that are there
};

// To say why a bundle has no kernel takes a comparison with all that it has.
enum class Question { kKernel, kWhy };

// Finds the kernel in `bundles` that fits this machine's GPU best; of equal ones, the first. Skips bundles that do not
// exist. LOAD errors: a bundle is damaged, or no bundle. `load` is that of the caller, with the architectures that it
// asks for here (see v1::Options). `driver`: the CUDA version of the machine's driver, 12040 for 12.4; 0: not known.
absl::StatusOr<BundleAnswer> AskBundles(Env& env, const std::vector<std::string>& bundles, const TrustedKeys& trusted,
                                        const v1::RecordedLoad& load, unsigned driver = 0,
                                        Question question = Question::kKernel);

}  // namespace kernix
