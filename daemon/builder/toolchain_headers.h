// SPDX-License-Identifier: Apache-2.0
//
// The headers of the toolchain that a build has read. No key covers them: they are recorded, and looked at again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/cache/entry.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// When a build began, by both clocks.
struct BuildStart {
  MonotonicTime monotonic;
  int64_t unix_ms = 0;
};

// The toolchain headers that a build has read.
struct HeadersRead {
  std::vector<cache::ToolchainHeader> headers;     // by portable path
  std::optional<std::vector<WatchedFile>> states;  // of the same files; nothing if one may have changed meanwhile
};

// A header that may have changed since the build began gets a digest that matches no content, and a line in the log:
// the next load of the entry builds it again. That build already knows the header's content, so it records the right
// digest whatever the file's time stamps say (a file server's clock may be ahead of this machine's). With a toolchain
// that is described, workers have read the headers, and have what the description says.
HeadersRead DigestToolchainHeaders(Env& env, toolchain::FileDigests& digests, const toolchain::Toolchain& toolchain,
                                   const std::vector<std::string_view>& dependency_files, const BuildStart& start);

// One of `headers`, which a build has read, that `toolchain` does not have any more, or only with other content: its
// path, or its portable name if it is nowhere. nullopt: all headers are as they were, and their states have been added
// to `states`.
std::optional<std::string> ChangedToolchainHeader(toolchain::FileDigests& digests,
                                                  const toolchain::Toolchain& toolchain,
                                                  const std::vector<cache::ToolchainHeader>& headers,
                                                  std::vector<WatchedFile>& states);

}  // namespace kernix::build
