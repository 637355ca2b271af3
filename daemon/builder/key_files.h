// SPDX-License-Identifier: Apache-2.0
//
// What a load's key was made from, and a build reads again: the contents of headers, files that flags name, tools.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/builder/load_observer.h"
#include "daemon/builder/toolchain_headers.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/flags/flags.h"

namespace kernix::build {

// INVALID_REQUEST if the headers take more than `limit` bytes as files and folders. One content may be staged under
// several names.
absl::Status CheckStagedBytes(const std::vector<HeaderRef>& headers, const HeaderContents& contents, uint64_t limit);

// Adds the content of the flag files that are staged. Outdated() if one has changed.
absl::Status ReadFlagFiles(Env& env, const std::vector<toolchain::FlagFile>& files, HeaderContents& contents);

// Checks after a build that the tools and the files that flags name are those that its key was made from. Outdated() if
// not.
absl::Status CheckNothingChanged(Env& env, toolchain::FileDigests& digests, const BuildRequest& request,
                                 const BuildStart& start);

}  // namespace kernix::build
