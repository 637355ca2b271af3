// SPDX-License-Identifier: Apache-2.0
//
// The client's config file: $KERNIX_CONFIG, else $XDG_CONFIG_HOME/kernix/client.toml, else
// ~/.config/kernix/client.toml.
//
//     address = "unix:/run/kernix/kernixd.sock"
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/client_environment.h"

namespace kernix {

struct ConfigFile {
  std::string path;     // empty: there is none
  std::string address;  // empty: not set
};

// INVALID_REQUEST, with file and line: no TOML, an unknown key, a value of the wrong type, a file that $KERNIX_CONFIG
// names and that cannot be read. That there is none at the usual places is no error.
absl::StatusOr<ConfigFile> ReadConfigFile(const ClientEnvironment& environment);

}  // namespace kernix
