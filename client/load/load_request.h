// SPDX-License-Identifier: Apache-2.0
//
// From what a caller wants to what the daemon is sent.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/headers/header_scan.h"
#include "client/headers/header_table.h"
#include "client/load/path_names.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct PreparedLoad {
  v1::LoadRequest request;
  HeaderScan headers;
  PathNames names;                    // for what comes back
  std::vector<std::string> warnings;  // for the user
};

// Where a load finds things.
struct LoadSurroundings {
  Env& env;
  const GetEnv& get_env;
  const std::vector<std::string>& site_packages;
  PrivateFolder header_folder;  // see HeaderTable
};

// Checks the arguments as far as that needs no compiler, finds the toolchain, the GPU and the headers. INVALID_REQUEST
// and TOOLCHAIN errors.
absl::StatusOr<PreparedLoad> PrepareLoad(const LoadSurroundings& surroundings, Language language,
                                         const std::string& name, const std::vector<Source>& sources,
                                         const LoadOptions& options);

}  // namespace kernix
