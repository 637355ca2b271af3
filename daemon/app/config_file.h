// SPDX-License-Identifier: Apache-2.0
//
// The config file of a daemon, in TOML.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/app/options.h"

namespace kernix::server {

// Reads `path` into `options`. INVALID_ARGUMENT that names file and line: no TOML, an unknown key, a bad value. The
// status of Env::ReadFile() when it cannot be read.
absl::Status ReadConfigFile(Env& env, const std::string& path, ServerOptions& options);

// The same from text; `path` is for messages.
absl::Status ParseConfig(const std::string& path, std::string_view text, ServerOptions& options);

}  // namespace kernix::server
