// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/key_files.h"

#include <memory>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "daemon/builder/load_errors.h"
#include "daemon/plan/include_roots.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {

absl::Status CheckStagedBytes(const std::vector<HeaderRef>& headers, const HeaderContents& contents, uint64_t limit) {
  uint64_t bytes = CountFolders(headers) * kBlockBytes;
  for (const HeaderRef& header : headers) bytes += contents.at(header.digest)->size();
  if (bytes <= limit) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("the headers of this load take ", bytes, " bytes as files and folders; at most ", limit,
                          " are allowed: narrow the include paths"));
}

absl::Status ReadFlagFiles(Env& env, const std::vector<toolchain::FlagFile>& files, HeaderContents& contents) {
  for (const toolchain::FlagFile& file : files) {
    if (file.staged.empty()) continue;
    absl::StatusOr<std::string> content = env.ReadFile(file.path);
    if (!content.ok() || DigestOf(*content) != file.digest) return Outdated(file.path);
    contents[file.digest] = exec::MakeContent(*std::move(content));
  }
  return absl::OkStatus();
}

absl::Status CheckNothingChanged(Env& env, toolchain::FileDigests& digests, const BuildRequest& request,
                                 const BuildStart& start) {
  if (const WatchedFile* changed = FirstChanged(env, request.toolchain->files)) {
    return Outdated(StrCat(changed->path, ", a file of the toolchain of ", request.toolchain->host.path, ","));
  }
  for (const toolchain::FlagFile& file : request.flag_files) {
    if (toolchain::IsDescribed(*request.toolchain, file.path)) continue;  // it is on workers
    const auto content = digests.GetContent(file.path);
    if (!content.ok() || content->digest != file.digest) return Outdated(file.path);
    // The file may have changed and changed back during the build. Staged content always matches the key.
    if (file.staged.empty() && content->since > start.monotonic) return Outdated(file.path);
  }
  return absl::OkStatus();
}

}  // namespace kernix::build
