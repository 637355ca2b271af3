// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix {

// The files of `folder` that match shell patterns such as "*.cu" and "more/*.cu"; "**" stands for the folder and all
// folders below it, except through links. The files of the first pattern come first, those of each pattern sorted; none
// comes twice. Returns INVALID_REQUEST if there is no such folder or no match.
absl::StatusOr<std::vector<std::string>> MatchingFiles(const std::string& folder,
                                                       const std::vector<std::string>& patterns);

}  // namespace kernix
