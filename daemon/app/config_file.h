// SPDX-License-Identifier: Apache-2.0
//
// The daemon's config file, in TOML.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/app/options.h"

namespace kernix::server {

// Reads `path` into `options`. INVALID_ARGUMENT, with file and line, for invalid TOML, unknown keys and bad values; a
// line of the message for each.
// If the file cannot be read, the status of Env::ReadFile().
absl::Status ReadConfigFile(Env& env, const std::string& path, ServerOptions& options);

// The same for text; `path` appears in messages.
absl::Status ParseConfig(const std::string& path, std::string_view text, ServerOptions& options);

}  // namespace kernix::server
