// SPDX-License-Identifier: Apache-2.0
//
// What a build has read outside its input root: headers of the toolchain, and files that sources name by their absolute
// paths. No key covers them: they are recorded, and looked at again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
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

// The files outside the input root that a build has read. "Headers", because most are.
struct HeadersRead {
  std::vector<StatedHeader> headers;               // by portable path
  std::optional<std::vector<WatchedFile>> states;  // of the same files; nothing if one may have changed meanwhile
};

// Which files a kernixd looks at. Texts can make a tool list a file that it has not read (by the assembler's `.file`);
// members of a shared kernixd must neither learn whether it exists, nor have kernixd read it. kToolchain: the folders
// of the toolchain, and /usr, which everybody knows.
enum class LookAt { kAll, kToolchain };

// A header that may have changed since the build began gets a digest that matches no content, and a line in the log:
// the next load of the entry builds it again. That build already knows the header's content, so it records the right
// digest whatever the file's time stamps say (a file server's clock may be ahead of this machine's). The same holds for
// a file that is gone, that is not looked at, or that a relative path names: every load builds it again. With a
// toolchain that is described, workers have read the headers, and have what the description says.
HeadersRead DigestToolchainHeaders(Env& env, toolchain::FileDigests& digests, const toolchain::Toolchain& toolchain,
                                   const std::vector<std::string>& dependency_files, const BuildStart& start,
                                   LookAt look_at);

// TOOLCHAIN if `toolchain` is described, and workers have read a header that its description lacks: every load would
// build it again.
absl::Status CheckIsDescribed(const toolchain::Toolchain& toolchain, const std::vector<std::string>& dependency_files);

// One of `headers`, which a build has read, that `toolchain` does not have any more, or only with other content: its
// path, or its portable name if it is nowhere. nullopt: all headers are as they were, and their states have been added
// to `states`.
std::optional<std::string> ChangedToolchainHeader(toolchain::FileDigests& digests,
                                                  const toolchain::Toolchain& toolchain,
                                                  const std::vector<StatedHeader>& headers,
                                                  std::vector<WatchedFile>& states);

// Those of `headers` that are not the toolchain's, by their recorded paths.
std::vector<std::string> OtherFiles(const toolchain::Toolchain& toolchain, const std::vector<StatedHeader>& headers);

}  // namespace kernix::build
