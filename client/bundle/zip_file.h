// SPDX-License-Identifier: Apache-2.0
//
// A bundle in one file: a zip whose entries are stored as they are.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kernix {

// Writes contents by name. Equal contents make equal files.
absl::Status WriteZip(const std::string& path, const std::map<std::string, std::string>& contents);

// Reads what WriteZip(), or another program, has written. DATA_LOSS: it is no zip, or damaged, or has folders.
absl::StatusOr<std::map<std::string, std::string>> ReadZip(const std::string& path);

}  // namespace kernix
