// SPDX-License-Identifier: Apache-2.0
//
// The table of all settings: one row serves the config file, the environment and the command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/app/options.h"

namespace kernix::server {

struct Setting {
  std::string_view name;   // in the config file: "store_directory", or "upstream.address" for a key of a table
  std::string_view value;  // placeholder for the value in --help; empty: a switch
  std::string_view help;
  // INVALID_ARGUMENT with the fault of `text`; the message does not name the setting.
  absl::Status (*set)(ServerOptions& options, const std::string& text);
  bool (*same)(const ServerOptions& a, const ServerOptions& b);
  bool reloadable = false;  // takes effect in a running daemon when it reads its config file again
  bool is_list = false;     // the config file has a list of strings; elsewhere they are separated by commas

  std::string Flag() const;      // "--store-directory"
  std::string Variable() const;  // "KERNIX_STORE_DIRECTORY"
};

const std::vector<Setting>& Settings();

// Null if there is no setting of that name.
const Setting* FindSetting(std::string_view name);

// Checks that the options are consistent. INVALID_ARGUMENT.
absl::Status CheckOptions(const ServerOptions& options);

// INVALID_ARGUMENT with these problems, one a line; OK if there are none.
absl::Status AllProblems(const std::vector<std::string>& problems);

// The config file, in TOML.

// Reads `path` into `options`. INVALID_ARGUMENT, with file and line, for invalid TOML, unknown keys and bad values; a
// line of the message for each.
// If the file cannot be read, the status of Env::ReadFile().
absl::Status ReadConfigFile(Env& env, const std::string& path, ServerOptions& options);

// The same for text; `path` appears in messages.
absl::Status ParseConfig(const std::string& path, std::string_view text, ServerOptions& options);

}  // namespace kernix::server
