// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/own_headers.h"

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

absl::Status CheckContents(const std::vector<Digest>& digests, const HeaderContents& contents) {
  for (const Digest& digest : digests) {
    const auto found = contents.find(digest);
    if (found == contents.end() || found->second == nullptr) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("header content ", digest.Hex(), " was not sent"));
    }
    if (DigestOf(*found->second) != digest) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("header content ", digest.Hex(),
                                                                " does not match its digest: did the file change "
                                                                "during the load?"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HeaderContents> OwnHeaders::FetchHeaders(const std::vector<Digest>& digests) {
  HeaderContents all = cache_.Find(user_, digests);
  std::vector<Digest> missing;
  for (const Digest& digest : digests) {
    if (!all.contains(digest)) missing.push_back(digest);
  }
  if (missing.empty()) return all;
  KERNIX_ASSIGN_OR_RETURN(const HeaderContents sent, asker_.FetchHeaders(missing));
  KERNIX_RETURN_IF_ERROR(CheckContents(missing, sent));
  cache_.Add(user_, sent);
  all.insert(sent.begin(), sent.end());
  return all;
}

}  // namespace kernix::build
