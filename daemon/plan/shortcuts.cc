// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/shortcuts.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

constexpr std::array<std::pair<std::string_view, Shortcut>, 7> kNames = {{
    {"phases", Shortcut::kPhases},
    {"stand_ins", Shortcut::kStandIns},
    {"preambles", Shortcut::kPreambles},
    {"compiled_preambles", Shortcut::kCompiledPreambles},
    {"step_results", Shortcut::kStepResults},
    {"host_bodies", Shortcut::kHostBodies},
    {"link_stubs", Shortcut::kLinkStubs},
}};

}  // namespace

absl::StatusOr<Shortcuts> ParseShortcuts(std::string_view names) {
  Shortcuts shortcuts;
  for (const absl::string_view name : absl::StrSplit(ToAbsl(names), ',')) {
    const auto* const found =
        std::find_if(kNames.begin(), kNames.end(), [&](const auto& each) { return ToAbsl(each.first) == name; });
    if (found == kNames.end()) {
      return absl::InvalidArgumentError(
          StrCat("\"", name, "\" is none of the shortcuts: ",
                 absl::StrJoin(kNames, ", ", [](std::string* out, const auto& each) { out->append(each.first); })));
    }
    shortcuts.insert(found->second);
  }
  return shortcuts;
}

}  // namespace kernix::build
