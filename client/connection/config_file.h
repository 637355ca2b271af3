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
  std::string path;     // empty: there is no file
  std::string address;  // empty: not set
};

// Returns INVALID_REQUEST, with file and line, for invalid TOML, an unknown key, a value of the wrong type, or an
// unreadable file that $KERNIX_CONFIG names. A missing file at the usual places is not an error.
absl::StatusOr<ConfigFile> ReadConfigFile(const ClientEnvironment& environment);

}  // namespace kernix
