// SPDX-License-Identifier: Apache-2.0
//
// The file that `record` writes and `prefetch` reads: a JSON object on each line. The first one has the version of the
// format, and the number of the next lines; then come the texts, by digest, and the loads, by name. So the same loads
// make the same file, and a comparison of two files shows the changes.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/load/recording.h"

namespace kernix::ctl {

std::string ManifestOf(const Recording& recording);

// INVALID_REQUEST, with `path` and the line, if `content` is not a whole manifest of this version. Each load then has
// its texts.
absl::StatusOr<Recording> ParseManifest(std::string_view content, const std::string& path);

// The same for a file.
absl::StatusOr<Recording> ReadManifest(const std::string& path);

}  // namespace kernix::ctl
