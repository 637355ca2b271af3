// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/web/open_metrics.h"

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix::ctl {

std::string ToOpenMetrics(std::string_view metrics) {
  constexpr std::string_view kTotal = "_total";
  std::string text;
  for (const absl::string_view piece : absl::StrSplit(ToAbsl(metrics), '\n', absl::SkipEmpty())) {
    const std::string_view line = ToStd(piece);
    const size_t name = line.find(' ', 2);  // after "# HELP", "# TYPE"
    const size_t end = line.find(' ', name + 1);
    const bool of_counter = line.starts_with('#') && line.substr(0, end).ends_with(kTotal);
    StrAppend(&text, of_counter ? line.substr(0, end - kTotal.size()) : line, of_counter ? line.substr(end) : "", "\n");
  }
  return text + "# EOF\n";
}

}  // namespace kernix::ctl
