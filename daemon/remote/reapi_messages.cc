// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/reapi_messages.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::remote {

namespace {

absl::Status NotAResult(const UpstreamOptions& options, std::string_view why) {
  return MakeError(v1::ErrorDetail::INTERNAL,
                   StrCat("the engine at ", options.address, " sent a result that cannot be used: ", why));
}

}  // namespace

absl::StatusOr<std::vector<OutputFile>> FilesOf(const UpstreamOptions& options,
                                                const build::bazel::remote::execution::v2::ActionResult& result) {
  std::vector<OutputFile> files;
  for (const auto& file : result.output_files()) {
    const std::optional<exec::BlobDigest> digest = GetDigest(file.digest());
    if (!digest) return NotAResult(options, StrCat("'", file.path(), "' has no SHA-256 digest"));
    OutputFile& added = files.emplace_back(OutputFile{file.path(), *digest});
    // Other bytes count as none: a reader that needs the file asks for the blob, and learns more.
    if (!file.contents().empty() && exec::BlobDigestOf(file.contents()) == *digest) {
      added.content = exec::MakeContent(file.contents());
    }
  }
  return files;
}

}  // namespace kernix::remote
