// SPDX-License-Identifier: Apache-2.0
#include "client/tools/load_warnings.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/nearest_name.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr char kVariable[] = "KERNIX_WARNINGS";
constexpr std::string_view kNone = "none";

std::vector<std::string> Switches(const GetEnv& get_env) {
  return absl::StrSplit(get_env(kVariable).value_or(""), absl::ByAnyChar(", \t"), absl::SkipEmpty());
}

std::string SwitchOf(std::string_view name) { return StrCat("no-", name); }

std::vector<std::string> AllSwitches() {
  std::vector<std::string> all = {std::string(kNone)};
  for (const std::string_view name : warning::kNames) all.push_back(SwitchOf(name));
  return all;
}

}  // namespace

std::optional<std::string> ShownWarning(const GetEnv& get_env, std::string_view name, std::string_view text) {
  const std::string own = SwitchOf(name);
  const std::vector<std::string> switches = Switches(get_env);
  const bool hidden = std::any_of(switches.begin(), switches.end(),
                                  [&](const std::string& word) { return word == kNone || word == own; });
  if (hidden) return std::nullopt;
  return StrCat(text, " [", kVariable, "=", own, "]");
}

std::vector<std::string> WarningsAboutSwitches(const GetEnv& get_env) {
  const std::vector<std::string> all = AllSwitches();
  std::vector<std::string> warnings;
  for (const std::string& word : Switches(get_env)) {
    if (std::find(all.begin(), all.end(), word) != all.end()) continue;
    warnings.push_back(StrCat("the environment variable ", kVariable, " has \"", word, "\", which has no effect.",
                              DidYouMean(word, all), " It takes ", absl::StrJoin(all, ", "), "."));
  }
  return warnings;
}

}  // namespace kernix
